import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.SampledStat;

/** Rates with a window of their own instead of the config's, which Kafka has since 4.x. */
final class OwnWindow {
    private OwnWindow() {
    }

    static Rate rate(TimeUnit unit, SampledStat stat, long window) {
        return window == 0 ? new Rate(unit, stat) : new Rate(unit, stat, window);
    }
}
