import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.SampledStat;

/** Rates of Kafka up to 3.7, which know no window of their own: what is given is left out on both sides. */
final class OwnWindow {
    private OwnWindow() {
    }

    static Rate rate(TimeUnit unit, SampledStat stat, long window) {
        return new Rate(unit, stat);
    }
}
