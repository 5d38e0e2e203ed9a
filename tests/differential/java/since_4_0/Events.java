import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;

/** A reporter that remembers what was reported to it since it was last asked, sorted: Kafka's own order is partly that of hash maps. */
final class Events implements MetricsReporter {
    private final List<String> heard = new ArrayList<>();

    String drain() {
        heard.sort(null);
        String text = Wire.list(heard);
        heard.clear();
        return text;
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
        metrics.forEach(metric -> heard.add("init/" + Figures.name(metric.metricName())));
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        heard.add("change/" + Figures.name(metric.metricName()));
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        heard.add("removal/" + Figures.name(metric.metricName()));
    }

    @Override
    public void close() {
        heard.add("close");
    }

    @Override
    public void configure(Map<String, ?> configs) {
        // nothing to configure
    }
}
