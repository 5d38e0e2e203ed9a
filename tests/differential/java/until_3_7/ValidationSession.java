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
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What a KRaft controller says to alterations of quotas; and the names of addresses. */
final class ValidationSession implements Replay.Session {
    private static final String CONTROLLER = "org.apache.kafka.controller.ClientQuotaControlManager";
    private final Method alter;

    ValidationSession() throws ReflectiveOperationException {
        alter = Class.forName(CONTROLLER).getDeclaredMethod("alterClientQuotas", java.util.Collection.class);
        alter.setAccessible(true);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        line.integer(); // nothing here knows time
        return switch (operation) {
            case "alter" -> alter(line);
            case "address" -> Wire.quote(InetAddress.getByName(line.text()).getHostAddress());
            case "telemetry" -> "unknown"; // clients push metrics since 3.7, under names that are compared as of 4.3
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
        Object result = alter.invoke(controller(), List.of(new ClientQuotaAlteration(entity, changes)));
        Method response = result.getClass().getMethod("response");
        response.setAccessible(true);
        ApiError error = (ApiError) ((Map<?, ?>) response.invoke(result)).get(entity);
        return Integer.toString(error.error().code());
    }

    private static Object controller() throws ReflectiveOperationException {
        Constructor<?> constructor = Class.forName(CONTROLLER).getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        SnapshotRegistry snapshots = new SnapshotRegistry(new LogContext());
        return constructor.getParameterCount() == 1
            ? constructor.newInstance(snapshots) : constructor.newInstance(new LogContext(), snapshots);
    }
}
