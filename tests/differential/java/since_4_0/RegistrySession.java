import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;

/** A registry with its sensors; the test also keeps sensors that were removed, as a caller in another thread may. */
final class RegistrySession implements Replay.Session {
    private final ManualClock clock;
    private final Metrics metrics;
    private final Events events = new Events();
    private final Map<String, Sensor> handles = new HashMap<>();

    /** {@code <clock> <level> (<tag> <value>)...}. */
    RegistrySession(Line line) {
        clock = new ManualClock(line.integer());
        MetricConfig config = new MetricConfig().recordLevel(RecordingLevel.valueOf(line.word()));
        Map<String, String> tags = new LinkedHashMap<>();
        while (line.more()) {
            tags.put(line.text(), line.text());
        }
        metrics = new Metrics(config.tags(tags), List.of(events), clock, false);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        clock.step(line.integer());
        try {
            return switch (operation) {
                case "sensor" -> create(line);
                case "remove_metric" -> Wire.flag(metrics.removeMetric(metric(line)) != null);
                case "value" -> value(metrics.metric(metric(line)));
                case "reconfigure" -> reconfigure(metrics.metric(metric(line)), line);
                case "expire" -> expire();
                case "dump" -> dump();
                default -> onSensor(operation, line.text(), line);
            };
        } catch (QuotaViolationException violation) {
            return Figures.violation(violation);
        } catch (IllegalArgumentException refused) {
            return "refused";
        }
    }

    private String onSensor(String operation, String name, Line line) {
        Sensor sensor = handles.get(name);
        return sensor == null ? "never created" : onSensor(operation, sensor, line);
    }

    private String onSensor(String operation, Sensor sensor, Line line) {
        switch (operation) {
            case "add" -> {
                return Wire.flag(sensor.add(metric(line), Stats.measurable(line), config(line)));
            }
            case "add_meter" -> {
                MetricName rate = metric(line);
                MetricName total = metric(line);
                return Wire.flag(sensor.add(Stats.meter(line, rate, total), config(line)));
            }
            case "record" -> sensor.record(line.number(), clock.milliseconds(), line.flag());
            case "record_strictly" -> recordStrictly(sensor, line.number());
            case "check" -> sensor.checkQuotas(clock.milliseconds());
            case "remove" -> metrics.removeSensor(sensor.name());
            case "state" -> {
                return Wire.flag(sensor.hasExpired()) + Wire.flag(sensor.hasMetrics()) + Wire.flag(sensor.shouldRecord());
            }
            default -> throw new IllegalStateException(operation);
        }
        return "ok";
    }

    /** What a strict controller mutation quota does around its sensor. */
    private void recordStrictly(Sensor sensor, double value) {
        synchronized (sensor) {
            sensor.checkQuotas(clock.milliseconds());
            sensor.record(value, clock.milliseconds(), false);
        }
    }

    /** {@code <name> <level> <inactive seconds> <config> <parents...>}; a parent that was never created is left out. */
    private String create(Line line) {
        String name = line.text();
        RecordingLevel level = RecordingLevel.valueOf(line.word());
        long inactiveSeconds = line.integer();
        MetricConfig config = config(line);
        List<Sensor> parents = new ArrayList<>();
        while (line.more()) {
            Sensor parent = handles.get(line.text());
            if (parent != null) {
                parents.add(parent);
            }
        }
        boolean known = metrics.getSensor(name) != null;
        handles.put(name, metrics.sensor(name, config, inactiveSeconds, level, parents.toArray(new Sensor[0])));
        return known ? "known" : "created";
    }

    private static String value(KafkaMetric metric) {
        return metric == null ? "absent" : Figures.value(metric);
    }

    private static String reconfigure(KafkaMetric metric, Line line) {
        if (metric != null) {
            metric.config(Stats.config(line));
        }
        return Wire.flag(metric != null);
    }

    private String expire() throws ReflectiveOperationException {
        Internals.expire(metrics);
        return "ok";
    }

    /** A config behind a 1, or a 0 for none: a sensor then takes the registry's, a metric its sensor's. */
    private MetricConfig config(Line line) {
        return line.flag() ? Stats.config(line) : null;
    }

    /** A name and the value of its tag, empty for no tag. */
    private MetricName metric(Line line) {
        String name = line.text();
        String tag = line.text();
        return metrics.metricName(name, "group", "", tag.isEmpty() ? Map.of() : Map.of("tag", tag));
    }

    private String dump() throws ReflectiveOperationException {
        List<String> sensors = new ArrayList<>();
        for (String name : new TreeSet<>(Internals.sensors(metrics))) {
            sensors.add(Wire.quote(name));
        }
        return Wire.list(sensors) + " " + Figures.all(metrics.metrics().values()) + " " + events.drain();
    }

    @Override
    public void close() {
        metrics.close();
    }
}
