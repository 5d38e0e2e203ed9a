import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import kafka.server.*; // until 4.3: ReplicationQuotaManager
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.server.config.ReplicationQuotaManagerConfig;
import org.apache.kafka.server.log.remote.quota.RLMQuotaManager;
import org.apache.kafka.server.log.remote.quota.RLMQuotaManagerConfig;
import org.apache.kafka.server.log.remote.quota.RLMQuotaMetrics;
import org.apache.kafka.server.quota.*; // since 4.4
import scala.jdk.javaapi.CollectionConverters;

/** The quotas on what a broker moves for itself: one of replication and one of tiered storage, over one registry. */
final class ByteRateSession implements Replay.Session {
    private static final String MARKS = "leader.replication.throttled.replicas";
    private final ManualClock clock;
    private final Metrics metrics;
    private final ReplicationQuotaManager replication;
    private final RLMQuotaManager tiered;
    private final RLMQuotaMetrics waits;
    private final TopicConfigHandler handler = new TopicConfigHandler(null, null, null);

    /** {@code <clock> <samples> <window s> <replication type> <FETCH|COPY> <tiered bound>}. */
    ByteRateSession(Line line) {
        clock = new ManualClock(line.integer());
        metrics = new Metrics(new MetricConfig(), List.of(), clock, false);
        int samples = line.small();
        int windowSeconds = line.small();
        QuotaType type = QuotaType.valueOf(line.word());
        String direction = line.word();
        replication = new ReplicationQuotaManager(
            new ReplicationQuotaManagerConfig(samples, windowSeconds), metrics, type, clock);
        tiered = new RLMQuotaManager(new RLMQuotaManagerConfig(line.integer(), samples, windowSeconds), metrics,
            QuotaType.valueOf("RLM_" + direction), "", clock);
        waits = new RLMQuotaMetrics(metrics, "remote-" + direction.toLowerCase(java.util.Locale.ROOT) + "-throttle-time",
            "RemoteLogManager", "%s", 3600);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        clock.step(line.integer());
        switch (operation) {
            case "update" -> replication.updateQuota(quota(line.word()));
            case "update_tiered" -> tiered.updateQuota(quota(line.word()));
            case "record" -> replication.record(line.integer());
            case "record_tiered" -> tiered.record(line.number());
            case "mark" -> mark(line);
            case "unmark" -> replication.removeThrottle(line.text());
            default -> {
                return ask(operation, line);
            }
        }
        return "ok";
    }

    private String ask(String operation, Line line) throws Exception {
        return switch (operation) {
            case "exceeded" -> Wire.flag(replication.isQuotaExceeded());
            case "marked" -> Wire.flag(replication.isThrottled(new TopicPartition(line.text(), line.small())));
            case "bound" -> Long.toString(replication.upperBound());
            case "wait" -> waitMs();
            case "parse" -> parse(line.text(), line.small());
            case "expire" -> expire();
            case "dump" -> dump();
            default -> throw new IllegalArgumentException(operation);
        };
    }

    private static Quota quota(String bound) {
        return bound.equals("-") ? null : new Quota(Wire.number(bound), true);
    }

    private void mark(Line line) {
        String topic = line.text();
        if (!line.more()) {
            replication.markThrottled(topic);
            return;
        }
        List<Integer> partitions = new ArrayList<>();
        for (int count = line.small(); count > 0; count--) {
            partitions.add(line.small());
        }
        replication.markThrottled(topic, partitions);
    }

    /** What happens before a transfer: a wait is measured. */
    private String waitMs() {
        long ms = tiered.getThrottleTimeMs();
        if (ms > 0) {
            waits.sensor().record((double) ms, clock.milliseconds());
        }
        return Long.toString(ms);
    }

    private String parse(String text, int broker) {
        Properties config = new Properties();
        config.put(MARKS, text);
        try {
            List<String> partitions = new ArrayList<>();
            CollectionConverters.asJava(handler.parseThrottledPartitions(config, broker, MARKS))
                .forEach(partition -> partitions.add(partition.toString()));
            return Wire.list(partitions);
        } catch (ConfigException | NumberFormatException | ArrayIndexOutOfBoundsException refused) {
            return "refused";
        }
    }

    private String expire() throws ReflectiveOperationException {
        Internals.expire(metrics);
        return "ok";
    }

    private String dump() throws ReflectiveOperationException {
        List<String> sensors = new ArrayList<>();
        for (String name : new TreeSet<>(Internals.sensors(metrics))) {
            sensors.add(Wire.quote(name));
        }
        List<KafkaMetric> figures = new ArrayList<>(metrics.metrics().values());
        figures.removeIf(metric -> metric.metricName().group().equals("kafka-metrics-count"));
        return Wire.list(sensors) + " " + Figures.all(figures);
    }
}
