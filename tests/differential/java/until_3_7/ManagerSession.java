import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.TimeUnit;
import kafka.network.RequestChannel;
import kafka.server.ClientQuotaManager;
import kafka.server.ClientQuotaManagerConfig;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.ControllerMutationQuota;
import kafka.server.ControllerMutationQuotaManager;
import kafka.server.QuotaType;
import kafka.server.ThrottledChannel;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaType;
import scala.Option;

/** The four managers of a node of Kafka up to 3.7 over one registry, with the operations of those since 4.0. */
final class ManagerSession implements Replay.Session {
    private static final Map<String, String> TYPES = Map.of("producer_byte_rate", "Produce", "consumer_byte_rate", "Fetch",
        "request_percentage", "Request", "controller_mutation_rate", "ControllerMutation");
    private static final Field ENABLED = enabled();
    private final ManualClock clock;
    private final Metrics metrics;
    private final ClientRequestQuotaManager request;
    private final ControllerMutationQuotaManager mutation;
    private final Map<String, ClientQuotaManager> managers;
    private final Map<String, ControllerMutationQuota> quotas = new HashMap<>();
    private int started = 0;
    private final List<String> ended = new ArrayList<>();

    /** {@code <clock> <samples> <window s> <controller samples> <controller window s>}. */
    ManagerSession(Line line) throws Exception {
        clock = new ManualClock(line.integer());
        metrics = new Metrics(new MetricConfig(), List.of(), clock, false);
        ClientQuotaManagerConfig config = Throttles.config(line.small(), line.small());
        ClientQuotaManagerConfig controller = Throttles.config(line.small(), line.small());
        Option<ClientQuotaCallback> none = Option.empty();
        ClientQuotaManager produce = new ClientQuotaManager(config, metrics, QuotaType.Produce$.MODULE$, clock, "", none);
        ClientQuotaManager fetch = new ClientQuotaManager(config, metrics, QuotaType.Fetch$.MODULE$, clock, "", none);
        request = new ClientRequestQuotaManager(config, metrics, clock, "", none);
        mutation = new ControllerMutationQuotaManager(controller, metrics, clock, "", none);
        managers = Map.of("Produce", produce, "Fetch", fetch, "Request", request, "ControllerMutation", mutation);
        close();
    }

    /** Ends the reapers that the managers started by themselves. */
    @Override
    public void close() throws ReflectiveOperationException {
        for (ClientQuotaManager manager : managers.values()) {
            manager.throttledChannelReaper().initiateShutdown();
            manager.throttledChannelReaper().interrupt();
        }
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        clock.step(line.integer());
        return switch (operation) {
            case "update" -> update(line);
            case "request" -> request(line);
            case "exempt" -> exempt(line);
            case "mutation" -> mutation(line);
            case "charge", "left" -> onQuota(operation, quotas.get(line.word()), line);
            case "dump" -> dump();
            case "expire" -> expire();
            default -> typed(operation, managers.get(line.word()), line);
        };
    }

    private String typed(String operation, ClientQuotaManager manager, Line line) throws Exception {
        switch (operation) {
            case "reap" -> {
                return reap(manager);
            }
            case "enabled" -> {
                return Wire.flag(manager.quotasEnabled());
            }
            default -> {
                return client(operation, manager, line.text(), line.text(), line);
            }
        }
    }

    private String client(String operation, ClientQuotaManager manager, String user, String clientId, Line line)
        throws ReflectiveOperationException {
        RequestChannel.Session session = Requests.session(user);
        switch (operation) {
            case "record" -> {
                return Integer.toString(
                    manager.maybeRecordAndGetThrottleTimeMs(session, clientId, line.number(), clock.milliseconds()));
            }
            case "uncheck" -> manager.recordNoThrottle(session, clientId, line.number());
            case "unrecord" -> manager.unrecordQuotaSensor(Requests.any(user, clientId), line.number(), clock.milliseconds());
            case "throttle" -> throttle(manager, Requests.any(user, clientId), line.small());
            case "most" -> {
                return Wire.bits(manager.getMaxValueInQuotaWindow(session, clientId));
            }
            case "limit" -> {
                return Wire.bits(manager.quota(session.principal(), clientId).bound());
            }
            case "tags" -> {
                return tags(manager, session, clientId);
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return "ok";
    }

    /** {@code <key> <user> <client> <bound or ->}: an entity is absent ({@code -}), the default ({@code *}) or a name. */
    private String update(Line line) throws ReflectiveOperationException {
        ClientQuotaManager manager = managers.get(TYPES.get(line.word()));
        Option<String> user = sanitized(line.word());
        String client = line.word();
        Option<String> sanitizedClient = sanitized(client);
        String bound = line.word();
        manager.updateQuota(user, sanitizedClient.map(Sanitizer::desanitize), sanitizedClient,
            bound.equals("-") ? Option.empty() : Option.apply(new Quota(Wire.number(bound), true)));
        StringBuilder enabled = new StringBuilder();
        for (String type : List.of("Produce", "Fetch", "Request", "ControllerMutation")) {
            enabled.append(ENABLED.getInt(managers.get(type)));
        }
        return enabled.toString();
    }

    private static Option<String> sanitized(String token) {
        if (token.equals("-")) {
            return Option.empty();
        }
        return Option.apply(token.equals("*") ? "<default>" : Sanitizer.sanitize(Wire.text(token)));
    }

    private static String tags(ClientQuotaManager manager, RequestChannel.Session session, String clientId) throws ReflectiveOperationException {
        ClientQuotaCallback callback =
            (ClientQuotaCallback) Internals.field(manager, ClientQuotaManager.class, "quotaCallback");
        ClientQuotaType type = (ClientQuotaType) Internals.field(manager, ClientQuotaManager.class, "clientQuotaType");
        Map<String, String> tags = callback.quotaMetricTags(type, session.principal(), clientId);
        return Wire.quote(tags.get("user")) + " " + Wire.quote(tags.get("client-id"));
    }

    /** A request whose handler took some nanoseconds, then the network thread some more if a quota listens. */
    private String request(Line line) {
        RequestChannel.Request message = timed(line.text(), line.text(), line.integer());
        int throttleMs = request.maybeRecordAndGetThrottleTimeMs(message, clock.milliseconds());
        return throttleMs + " " + Wire.flag(network(message, line.integer()));
    }

    private String exempt(Line line) {
        RequestChannel.Request message = timed("", "", line.integer());
        request.maybeRecordExempt(message);
        return Wire.flag(network(message, line.integer()));
    }

    private static RequestChannel.Request timed(String user, String clientId, long handlerNanos) {
        RequestChannel.Request message = Requests.any(user, clientId);
        message.requestDequeueTimeNanos_$eq(0);
        message.apiLocalCompleteTimeNanos_$eq(handlerNanos);
        return message;
    }

    private static boolean network(RequestChannel.Request message, long nanos) {
        boolean listens = message.recordNetworkThreadTimeCallback().isDefined();
        if (listens) {
            message.recordNetworkThreadTimeCallback().get().apply(nanos);
        }
        return listens;
    }

    private void throttle(ClientQuotaManager manager, RequestChannel.Request message, int throttleMs) {
        String deadline = Long.toString(TimeUnit.NANOSECONDS.toMillis(clock.nanoseconds()) + throttleMs);
        Throttles.mute(manager, message, throttleMs, () -> started++, () -> ended.add(deadline));
    }

    /**
     * One turn of the reaper, and the deadlines of the throttles it ended: Java leaves the order of equal ones open. A turn in which
     * nothing is due only waits a second for the next one, so it is left out.
     */
    @SuppressWarnings("unchecked")
    private String reap(ClientQuotaManager manager) throws ReflectiveOperationException {
        DelayQueue<ThrottledChannel> queue =
            (DelayQueue<ThrottledChannel>) Internals.field(manager, ClientQuotaManager.class, "delayQueue");
        ThrottledChannel head = queue.peek();
        if (head != null && head.getDelay(TimeUnit.NANOSECONDS) <= 0) {
            manager.throttledChannelReaper().doWork();
        }
        String answer = started + " " + queue.size() + " " + Wire.list(ended);
        ended.clear();
        return answer;
    }

    /** {@code <id> <strict|permissive|version> <user> <client>}: a version decides as for an API that is strict since 6. */
    private String mutation(Line line) {
        String id = line.word();
        String mode = line.word();
        String user = line.text();
        String clientId = line.text();
        ControllerMutationQuota quota = switch (mode) {
            case "strict" -> mutation.newStrictQuotaFor(Requests.session(user), clientId);
            case "permissive" -> mutation.newPermissiveQuotaFor(Requests.session(user), clientId);
            default -> mutation.newQuotaFor(Requests.createTopics(user, Short.parseShort(mode), clientId), (short) 6);
        };
        quotas.put(id, quota);
        return quota.getClass().getSimpleName().replace("ControllerMutationQuota", "").replace("$", "");
    }

    private static String onQuota(String operation, ControllerMutationQuota quota, Line line) {
        if (quota == null) {
            return "never made";
        }
        return operation.equals("charge") ? charge(quota, line.number()) : left(quota);
    }

    private static String charge(ControllerMutationQuota quota, double permits) {
        try {
            quota.record(permits);
            return "ok";
        } catch (ThrottlingQuotaExceededException exceeded) {
            return "refused " + exceeded.throttleTimeMs();
        }
    }

    private static String left(ControllerMutationQuota quota) {
        return quota.throttleTime() + " " + Wire.flag(quota.isExceeded());
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

    private static Field enabled() {
        try {
            Field field = ClientQuotaManager.class.getDeclaredField("kafka$server$ClientQuotaManager$$quotaTypesEnabled");
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException moved) {
            throw new IllegalStateException(moved);
        }
    }
}
