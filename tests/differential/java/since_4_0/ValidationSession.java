import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.telemetry.internals.MetricKey;
import org.apache.kafka.common.telemetry.internals.TelemetryMetricNamingConvention;

/** What a KRaft controller says to alterations of quotas; and the names of pushed metrics and of addresses. */
final class ValidationSession implements Replay.Session {
    private static final String CONTROLLER = "org.apache.kafka.controller.ClientQuotaControlManager";
    private final Method alter;
    private final Constructor<?> builder;

    ValidationSession() throws ReflectiveOperationException {
        builder = Class.forName(CONTROLLER + "$Builder").getDeclaredConstructor();
        builder.setAccessible(true);
        alter = Class.forName(CONTROLLER).getDeclaredMethod("alterClientQuotas", java.util.Collection.class);
        alter.setAccessible(true);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        line.integer(); // nothing here knows time
        return switch (operation) {
            case "alter" -> alter(line);
            case "telemetry" -> telemetry(line);
            case "address" -> Wire.quote(InetAddress.getByName(line.text()).getHostAddress());
            default -> throw new IllegalArgumentException(operation);
        };
    }

    /** {@code <dimensions> (<type> <name>)... (<key> <value>)...} on a new controller: the error code. */
    private String alter(Line line) throws Exception {
        Map<String, String> names = new HashMap<>();
        for (int dimensions = line.small(); dimensions > 0; dimensions--) {
            names.put(line.text(), line.text());
        }
        ClientQuotaEntity entity = new ClientQuotaEntity(names);
        List<ClientQuotaAlteration.Op> changes = new ArrayList<>();
        while (line.more()) {
            String key = line.text();
            String value = line.word();
            changes.add(new ClientQuotaAlteration.Op(key, value.equals("-") ? null : Wire.number(value)));
        }
        Method build = builder.getDeclaringClass().getDeclaredMethod("build");
        build.setAccessible(true);
        Object controller = build.invoke(builder.newInstance());
        Object result = alter.invoke(controller, List.of(new ClientQuotaAlteration(entity, changes)));
        Method response = result.getClass().getMethod("response");
        response.setAccessible(true);
        ApiError error = (ApiError) ((Map<?, ?>) response.invoke(result)).get(entity);
        return Integer.toString(error.error().code());
    }

    private static String telemetry(Line line) {
        String prefix = line.text();
        String group = line.text();
        String name = line.text();
        Map<String, String> tags = new LinkedHashMap<>();
        while (line.more()) {
            tags.put(line.text(), line.text());
        }
        try {
            MetricKey key = TelemetryMetricNamingConvention.getClientTelemetryMetricNamingStrategy(prefix)
                .metricKey(new MetricName(name, group, "", tags));
            List<String> labels = new ArrayList<>();
            key.tags().forEach((label, value) -> labels.add(Wire.quote(label) + "=" + Wire.quote(value)));
            labels.removeIf(label -> label.startsWith(Wire.quote("client_id") + "="));
            labels.sort(null);
            return Wire.quote(key.name()) + " " + Wire.list(labels);
        } catch (IllegalStateException sameLabel) {
            return "refused";
        }
    }
}
