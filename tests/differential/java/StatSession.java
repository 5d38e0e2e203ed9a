import java.util.List;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.CompoundStat.NamedMeasurable;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Stat;
import org.apache.kafka.common.metrics.stats.Meter;
import org.apache.kafka.common.metrics.stats.Rate;

/** One statistic, given its config and its time at every call. */
final class StatSession implements Replay.Session {
    private final Stat stat;
    private final List<Measurable> measurables;
    private MetricConfig config;
    private long nowMs;

    StatSession(Line line) {
        nowMs = line.integer();
        if (line.flag()) {
            Meter meter = Stats.meter(line, name("rate"), name("total"));
            stat = meter;
            measurables = meter.stats().stream().map(NamedMeasurable::stat).toList();
        } else {
            MeasurableStat single = Stats.measurable(line);
            stat = single;
            measurables = List.of(single);
        }
        config = Stats.config(line);
    }

    private static MetricName name(String name) {
        return new MetricName(name, "", "", java.util.Map.of());
    }

    @Override
    public String apply(String operation, Line line) {
        nowMs += line.integer();
        switch (operation) {
            case "record" -> stat.record(config, line.number(), nowMs);
            case "config" -> config = Stats.config(line);
            case "measure" -> {
                return Wire.list(measurables.stream().map(each -> Wire.bits(each.measure(config, nowMs))).toList());
            }
            case "window" -> {
                return Long.toString(((Rate) stat).windowSize(config, nowMs));
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return "ok";
    }
}
