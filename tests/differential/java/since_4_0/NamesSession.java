import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.utils.*; // until 4.3: Sanitizer
import org.apache.kafka.common.utils.internals.*; // since 4.4

/** How Kafka writes names: percent-encoded users, quoted tag values, whole MBean names. */
final class NamesSession implements Replay.Session {
    private final Method mbeanName;

    NamesSession() throws ReflectiveOperationException {
        mbeanName = JmxReporter.class.getDeclaredMethod("getMBeanName", String.class, MetricName.class);
        mbeanName.setAccessible(true);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        line.integer(); // names know no time
        return switch (operation) {
            case "sanitize" -> Wire.quote(Sanitizer.sanitize(line.text()));
            case "desanitize" -> desanitize(line.text());
            case "jmx" -> Wire.quote(Sanitizer.jmxSanitize(line.text()));
            case "unquote" -> unquote(line.text());
            case "mbean" -> Wire.quote((String) mbeanName.invoke(null, line.text(), metric(line)));
            case "parse" -> parse(line.text());
            default -> throw new IllegalArgumentException(operation);
        };
    }

    private static String desanitize(String text) {
        try {
            return Wire.quote(Sanitizer.desanitize(text));
        } catch (IllegalArgumentException malformed) {
            return "malformed";
        }
    }

    private static String unquote(String text) {
        try {
            return Wire.quote(ObjectName.unquote(text));
        } catch (IllegalArgumentException malformed) {
            return "malformed";
        }
    }

    /** Domain and properties, sorted, values unquoted; a pattern names no bean and counts as malformed. */
    private static String parse(String text) {
        try {
            ObjectName name = new ObjectName(text);
            if (name.isPattern()) {
                return "malformed";
            }
            StringBuilder parsed = new StringBuilder(Wire.quote(name.getDomain()));
            for (Map.Entry<String, String> property : new TreeMap<>(name.getKeyPropertyList()).entrySet()) {
                String value = property.getValue();
                parsed.append(' ').append(Wire.quote(property.getKey())).append('=')
                    .append(value.startsWith("\"") ? unquote(value) : Wire.quote(value));
            }
            return parsed.toString();
        } catch (MalformedObjectNameException malformed) {
            return "malformed";
        }
    }

    private static MetricName metric(Line line) {
        String group = line.text();
        Map<String, String> tags = new LinkedHashMap<>();
        while (line.more()) {
            tags.put(line.text(), line.text());
        }
        return new MetricName("name", group, "", tags);
    }
}
