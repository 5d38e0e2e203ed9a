import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.TimeUnit;
import kafka.server.*; // until 4.3: ClientRequestQuotaManager, QuotaFactory
import kafka.server.metadata.ClientQuotaMetadataManager;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.metadata.ClientQuotaRecord.EntityData;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.image.ClientQuotasDelta;
import org.apache.kafka.image.ClientQuotasImage;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.*; // since 4.4: ClientRequestQuotaManager, QuotaFactory
import org.apache.kafka.server.quota.ClientQuotaManager.ThrottledChannelReaper;

/** The four managers of a node over one registry, fed with quotas the way a KRaft broker feeds them: as metadata deltas. */
final class ManagerSession implements Replay.Session {
    private final ManualClock clock;
    private final Metrics metrics;
    private final ClientRequestQuotaManager request;
    private final ControllerMutationQuotaManager mutation;
    private final Map<String, ClientQuotaManager> managers;
    private final ClientQuotaMetadataManager metadata;
    private final Map<String, ControllerMutationQuota> quotas = new HashMap<>();
    private int started = 0;
    private final List<String> ended = new ArrayList<>();

    /** {@code <clock> <samples> <window s> <controller samples> <controller window s>}. */
    ManagerSession(Line line) throws Exception {
        clock = new ManualClock(line.integer());
        metrics = new Metrics(new MetricConfig(), List.of(), clock, false);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(line.small(), line.small());
        ClientQuotaManagerConfig controller = new ClientQuotaManagerConfig(line.small(), line.small());
        ClientQuotaManager produce = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, clock, "");
        ClientQuotaManager fetch = new ClientQuotaManager(config, metrics, QuotaType.FETCH, clock, "");
        request = new ClientRequestQuotaManager(config, metrics, clock, "", Optional.empty());
        mutation = new ControllerMutationQuotaManager(controller, metrics, clock, "", Optional.empty());
        managers = Map.of("Produce", produce, "Fetch", fetch, "Request", request, "ControllerMutation", mutation);
        metadata = new ClientQuotaMetadataManager(
            new QuotaFactory.QuotaManagers(fetch, produce, request, mutation, null, null, null, Optional.empty()), null);
        close();
    }

    /** Ends the reapers that the managers started by themselves. */
    @Override
    public void close() throws ReflectiveOperationException {
        for (ClientQuotaManager manager : managers.values()) {
            ThrottledChannelReaper reaper =
                (ThrottledChannelReaper) Internals.field(manager, ClientQuotaManager.class, "throttledChannelReaper");
            reaper.initiateShutdown();
            reaper.interrupt();
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
        Session session = Requests.session(user);
        switch (operation) {
            case "record" -> {
                return Integer.toString(
                    manager.maybeRecordAndGetThrottleTimeMs(session, clientId, line.number(), clock.milliseconds()));
            }
            case "uncheck" -> manager.recordNoThrottle(session, clientId, line.number());
            case "unrecord" -> manager.unrecordQuotaSensor(session, clientId, line.number(), clock.milliseconds());
            case "throttle" -> throttle(manager, session, clientId, line.small());
            case "most" -> {
                return Wire.bits(manager.maxValueInQuotaWindow(session, clientId));
            }
            case "limit" -> {
                return Wire.bits(manager.quota(session.principal, clientId).bound());
            }
            case "tags" -> {
                return tags(manager, session, clientId);
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return "ok";
    }

    /** {@code <key> <user> <client> <bound or ->}: an entity is absent ({@code -}), the default ({@code *}) or a name. */
    private String update(Line line) {
        String key = line.word();
        List<EntityData> entity = new ArrayList<>();
        entity(entity, "user", line.word());
        entity(entity, "client-id", line.word());
        String bound = line.word();
        ClientQuotaRecord change = new ClientQuotaRecord().setEntity(entity).setKey(key);
        change = bound.equals("-") ? change.setRemove(true) : change.setValue(Wire.number(bound));
        ClientQuotasDelta delta = new ClientQuotasDelta(ClientQuotasImage.EMPTY);
        delta.replay(change);
        metadata.accept(delta);
        StringBuilder enabled = new StringBuilder();
        for (String type : List.of("Produce", "Fetch", "Request", "ControllerMutation")) {
            enabled.append(managers.get(type).quotaTypesEnabled());
        }
        return enabled.toString();
    }

    private static void entity(List<EntityData> entity, String type, String token) {
        if (!token.equals("-")) {
            entity.add(new EntityData().setEntityType(type).setEntityName(token.equals("*") ? null : Wire.text(token)));
        }
    }

    private static String tags(ClientQuotaManager manager, Session session, String clientId) throws ReflectiveOperationException {
        ClientQuotaCallback callback =
            (ClientQuotaCallback) Internals.field(manager, ClientQuotaManager.class, "quotaCallback");
        ClientQuotaType type = (ClientQuotaType) Internals.field(manager, ClientQuotaManager.class, "clientQuotaType");
        Map<String, String> tags = callback.quotaMetricTags(type, session.principal, clientId);
        return Wire.quote(tags.get("user")) + " " + Wire.quote(tags.get("client-id"));
    }

    /** A request whose handler took some nanoseconds, then the network thread some more if a quota listens. */
    private String request(Line line) throws ReflectiveOperationException {
        Message message = new Message(line.text(), line.text(), line.integer());
        int throttleMs = message.throttleMs(request, clock.milliseconds());
        return throttleMs + " " + Wire.flag(message.network(line.integer()));
    }

    private String exempt(Line line) throws ReflectiveOperationException {
        Message message = new Message("", "", line.integer());
        message.exempt(request);
        return Wire.flag(message.network(line.integer()));
    }

    private void throttle(ClientQuotaManager manager, Session session, String clientId, int throttleMs) {
        String deadline = Long.toString(TimeUnit.NANOSECONDS.toMillis(clock.nanoseconds()) + throttleMs);
        manager.throttle(clientId, session, new ThrottleCallback() {
            @Override
            public void startThrottling() {
                started++;
            }

            @Override
            public void endThrottling() {
                ended.add(deadline);
            }
        }, throttleMs);
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
            manager.processThrottledChannelReaperDoWork();
        }
        String answer = started + " " + queue.size() + " " + Wire.list(ended);
        ended.clear();
        return answer;
    }

    /** {@code <id> <strict|permissive|version> <user> <client>}: a version decides as for an API that is strict since 6. */
    private String mutation(Line line) {
        String id = line.word();
        String mode = line.word();
        Session session = Requests.session(line.text());
        String clientId = line.text();
        ControllerMutationQuota quota = switch (mode) {
            case "strict" -> mutation.newStrictQuotaFor(session, clientId);
            case "permissive" -> mutation.newPermissiveQuotaFor(session, clientId);
            default -> mutation.newQuotaFor(session, Requests.createTopics(Short.parseShort(mode), clientId), (short) 6);
        };
        quotas.put(id, quota);
        if (quota == ControllerMutationQuota.UNBOUNDED_CONTROLLER_MUTATION_QUOTA) {
            return "Unbounded";
        }
        return quota.getClass().getSimpleName().replace("ControllerMutationQuota", "");
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
}
