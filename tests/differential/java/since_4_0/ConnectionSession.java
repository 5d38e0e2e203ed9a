import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import kafka.network.ConnectionQuotas;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.network.ConnectionThrottledException;
import org.apache.kafka.network.TooManyConnectionsException;
import scala.Option;

/**
 * The quotas on new connections.
 *
 * <p>Kafka's {@code inc} waits in real time, so its two halves are called one by one, and {@code inc} itself only where nothing can
 * make it wait: when no rate of broker or listener is limited, and a slot is free.
 */
final class ConnectionSession implements Replay.Session {
    private final ManualClock clock;
    private final Metrics metrics;
    private final KafkaConfig config;
    private final ConnectionQuotas quotas;

    /** {@code <clock> <samples> <window s> <rate> <max connections> <max per ip>}; a zero rate leaves it unlimited. */
    ConnectionSession(Line line) {
        clock = new ManualClock(line.integer());
        metrics = new Metrics(new MetricConfig(), List.of(), clock, false);
        Properties properties = new Properties();
        properties.put("process.roles", "broker");
        properties.put("node.id", "1");
        properties.put("controller.quorum.voters", "2@localhost:9093");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("listeners", "BROKER://localhost:9092,CLIENT://localhost:9094");
        properties.put("inter.broker.listener.name", "BROKER");
        properties.put("listener.security.protocol.map", "BROKER:PLAINTEXT,CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        properties.put("quota.window.num", line.word());
        properties.put("quota.window.size.seconds", line.word());
        properties.put("max.connection.creation.rate", line.word());
        properties.put("max.connections", line.word());
        properties.put("max.connections.per.ip", line.word());
        config = KafkaConfig.fromProps(properties, false);
        quotas = new ConnectionQuotas(config, clock, metrics);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        clock.step(line.integer());
        switch (operation) {
            case "broker_rate" -> quotas.updateBrokerMaxConnectionRate(line.small());
            case "max_connections" -> quotas.updateBrokerMaxConnections(line.small());
            case "max_per_ip" -> quotas.updateMaxConnectionsPerIp(line.small());
            case "ip_rate" -> quotas.updateIpConnectionRateQuota(Option.apply(ip(line.text())), rate(line.word()));
            case "expire" -> Internals.expire(metrics);
            case "dump" -> {
                return dump();
            }
            case "ip_limit", "count" -> {
                InetAddress ip = ip(line.text());
                return Integer.toString(operation.equals("count") ? quotas.get(ip) : quotas.connectionRateForIp(ip));
            }
            default -> {
                return onListener(operation, new ListenerName(line.text()), line);
            }
        }
        return "ok";
    }

    private String onListener(String operation, ListenerName listener, Line line) throws Exception {
        switch (operation) {
            case "add_listener" -> quotas.addListener(config, listener);
            case "remove_listener" -> quotas.removeListener(config, listener);
            case "listener" -> reconfigure(listener, line.word(), line.word());
            case "accept" -> {
                return call("recordConnectionAndGetThrottleTimeMs", listener, long.class, clock.milliseconds());
            }
            case "admit" -> {
                return call("recordIpConnectionMaybeThrottle", listener, InetAddress.class, ip(line.text()));
            }
            case "slot" -> {
                return call("connectionSlotAvailable", listener) + " " + Wire.flag(quotas.maxConnectionsExceeded(listener));
            }
            case "open" -> {
                return open(listener, ip(line.text()));
            }
            case "close" -> {
                return close(listener, ip(line.text()));
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return "ok";
    }

    private String open(ListenerName listener, InetAddress ip) throws Exception {
        if (call("connectionSlotAvailable", listener).equals("false")) {
            return "full";
        }
        try {
            quotas.inc(listener, ip, null);
            return "ok";
        } catch (TooManyConnectionsException refused) {
            return "too many, " + refused.count;
        } catch (ConnectionThrottledException refused) {
            return throttled(refused);
        }
    }

    private String close(ListenerName listener, InetAddress ip) {
        try {
            quotas.dec(listener, ip);
            return "ok";
        } catch (IllegalArgumentException refused) {
            return "refused";
        }
    }

    /** As when the listener's dynamic configs change; one that is not there has none. */
    private void reconfigure(ListenerName listener, String rate, String maxConnections) {
        if (quotas.maxConnectionsPerListener().contains(listener)) {
            Map<String, String> changed = new HashMap<>(Map.of("max.connection.creation.rate", rate));
            changed.put("max.connections", maxConnections);
            quotas.maxConnectionsPerListener().apply(listener).reconfigure(changed);
        }
    }

    private String call(String name, ListenerName listener, Class<?> type, Object argument) throws Exception {
        Method method = ConnectionQuotas.class.getDeclaredMethod(name, ListenerName.class, type);
        method.setAccessible(true);
        try {
            return String.valueOf(method.invoke(quotas, listener, argument));
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof ConnectionThrottledException refused) {
                return throttled(refused);
            }
            throw failed;
        }
    }

    private String call(String name, ListenerName listener) throws ReflectiveOperationException {
        Method method = ConnectionQuotas.class.getDeclaredMethod(name, ListenerName.class);
        method.setAccessible(true);
        return String.valueOf(method.invoke(quotas, listener));
    }

    private static String throttled(ConnectionThrottledException refused) {
        return "throttled " + (refused.startThrottleTimeMs + refused.throttleTimeMs);
    }

    private static Option<Object> rate(String rate) {
        return rate.equals("-") ? Option.empty() : Option.apply(Integer.valueOf(rate));
    }

    private static InetAddress ip(String text) throws UnknownHostException {
        return text == null ? null : InetAddress.getByName(text);
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
