import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.CumulativeCount;
import org.apache.kafka.common.metrics.stats.CumulativeSum;
import org.apache.kafka.common.metrics.stats.Max;
import org.apache.kafka.common.metrics.stats.Meter;
import org.apache.kafka.common.metrics.stats.Min;
import org.apache.kafka.common.metrics.stats.SampledStat;
import org.apache.kafka.common.metrics.stats.SimpleRate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.metrics.stats.Value;
import org.apache.kafka.common.metrics.stats.WindowedCount;
import org.apache.kafka.common.metrics.stats.WindowedSum;

/** Kafka's statistics and configs by the words of the protocol. */
final class Stats {
    private Stats() {
    }

    /** {@code <kind> <unit> <inner> <window in that unit>}; unit, inner and window are given for every kind, used where they apply. */
    static MeasurableStat measurable(Line line) {
        String kind = line.word();
        TimeUnit unit = TimeUnit.valueOf(line.word());
        String inner = line.word();
        long window = line.integer();
        return switch (kind) {
            case "Rate" -> OwnWindow.rate(unit, sampled(inner), window);
            case "SimpleRate" -> new SimpleRate();
            case "TokenBucket" -> new TokenBucket(unit);
            case "CumulativeSum" -> new CumulativeSum();
            case "CumulativeCount" -> new CumulativeCount();
            case "Value" -> new Value();
            default -> sampled(kind);
        };
    }

    static Meter meter(Line line, MetricName rate, MetricName total) {
        TimeUnit unit = TimeUnit.valueOf(line.word());
        return new Meter(unit, sampled(line.word()), rate, total);
    }

    private static SampledStat sampled(String kind) {
        return switch (kind) {
            case "WindowedSum" -> new WindowedSum();
            case "WindowedCount" -> new WindowedCount();
            case "Avg" -> new Avg();
            case "Max" -> new Max();
            case "Min" -> new Min();
            default -> throw new IllegalArgumentException(kind);
        };
    }

    /** {@code <samples> <window ms> <event window> <bound or -> <upper>}. */
    static MetricConfig config(Line line) {
        MetricConfig config = new MetricConfig().samples(line.small()).timeWindow(line.integer(), TimeUnit.MILLISECONDS)
            .eventWindow(line.integer());
        String bound = line.word();
        boolean upper = line.flag();
        return bound.equals("-") ? config : config.quota(new Quota(Wire.number(bound), upper));
    }
}
