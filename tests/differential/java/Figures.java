import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.QuotaViolationException;

/** Metrics as text. */
final class Figures {
    private Figures() {
    }

    static String name(MetricName metric) {
        StringBuilder text = new StringBuilder(Wire.quote(metric.group())).append('/').append(Wire.quote(metric.name()));
        for (Map.Entry<String, String> tag : metric.tags().entrySet()) {
            text.append('/').append(Wire.quote(tag.getKey())).append('=').append(Wire.quote(tag.getValue()));
        }
        return text.toString();
    }

    static String value(KafkaMetric metric) {
        return Wire.bits(((Number) metric.metricValue()).doubleValue());
    }

    /** Every metric, its value now and its bound if it has one, sorted by name. */
    static String all(Collection<KafkaMetric> metrics) {
        List<String> lines = new ArrayList<>();
        for (KafkaMetric metric : metrics) {
            lines.add(name(metric.metricName()) + ":" + value(metric) + ":" + bound(metric));
        }
        lines.sort(null);
        return Wire.list(lines);
    }

    private static String bound(KafkaMetric metric) {
        return metric.config().quota() == null ? "-" : Wire.bits(metric.config().quota().bound());
    }

    static String violation(QuotaViolationException violation) {
        return "violation " + name(violation.metric().metricName()) + " " + Wire.bits(violation.value()) + " "
            + Wire.bits(violation.bound());
    }
}
