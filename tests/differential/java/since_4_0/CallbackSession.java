import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.*; // until 4.3: Sanitizer
import org.apache.kafka.common.utils.internals.*; // since 4.4
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientQuotaManager.ClientIdEntity;
import org.apache.kafka.server.quota.ClientQuotaManager.ThrottledChannelReaper;
import org.apache.kafka.server.quota.ClientQuotaManager.UserEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** Two quota managers with a callback that measures users by the length of their names. */
final class CallbackSession implements Replay.Session {
    private final ManualClock clock;
    private final Metrics metrics;
    private final Lengths callback = new Lengths();
    private final Map<String, ClientQuotaManager> managers;

    /** {@code <clock> <samples> <window s>}. */
    CallbackSession(Line line) throws ReflectiveOperationException {
        clock = new ManualClock(line.integer());
        metrics = new Metrics(new MetricConfig(), List.of(), clock, false);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(line.small(), line.small());
        Optional<Plugin<ClientQuotaCallback>> plugin =
            Optional.of(Plugin.wrapInstance((ClientQuotaCallback) callback, metrics, "client.quota.callback.class"));
        managers = Map.of("PRODUCE", new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, clock, "", plugin),
            "CONTROLLER_MUTATION", new ControllerMutationQuotaManager(config, metrics, clock, "", plugin));
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
        if (operation.equals("dump")) {
            return dump();
        }
        if (operation.equals("expire")) {
            Internals.expire(metrics);
            return "ok";
        }
        String type = line.word();
        ClientQuotaManager manager = managers.get(type);
        switch (operation) {
            case "reset" -> callback.stale.add(ClientQuotaType.valueOf(type));
            case "change" -> callback.limits.put(type + "/" + line.word(), line.number());
            case "update" -> {
                return update(manager, line);
            }
            default -> {
                return client(operation, manager, line.text(), line.text(), line);
            }
        }
        return "ok";
    }

    private static String update(ClientQuotaManager manager, Line line) {
        Optional<ConfigEntity> user = entity(line.word(), true);
        Optional<ConfigEntity> client = entity(line.word(), false);
        String bound = line.word();
        manager.updateQuota(user, client,
            bound.equals("-") ? Optional.empty() : Optional.of(new Quota(Wire.number(bound), true)));
        return Integer.toString(manager.quotaTypesEnabled());
    }

    private static Optional<ConfigEntity> entity(String token, boolean isUser) {
        if (token.equals("*")) {
            return Optional.of(isUser ? ClientQuotaManager.DEFAULT_USER_ENTITY : ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        }
        String name = Wire.text(token);
        return Optional.ofNullable(name)
            .map(text -> isUser ? new UserEntity(Sanitizer.sanitize(text)) : new ClientIdEntity(text));
    }

    private String client(String operation, ClientQuotaManager manager, String user, String clientId, Line line) {
        Session session = Requests.session(user);
        return switch (operation) {
            case "record" -> Integer.toString(
                manager.maybeRecordAndGetThrottleTimeMs(session, clientId, line.number(), clock.milliseconds()));
            case "limit" -> Wire.bits(manager.quota(session.principal, clientId).bound());
            case "most" -> Wire.bits(manager.maxValueInQuotaWindow(session, clientId));
            default -> throw new IllegalArgumentException(operation);
        };
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

    private static final class Lengths implements ClientQuotaCallback {
        private final Map<String, Double> limits = new HashMap<>();
        private final Set<ClientQuotaType> stale = EnumSet.noneOf(ClientQuotaType.class);

        private static String group(String name) {
            return Integer.toString(name.getBytes(StandardCharsets.UTF_8).length % 3);
        }

        private static String key(ClientQuotaType type, ClientQuotaEntity entity) {
            return type + "/" + group(entity.configEntities().get(0).name());
        }

        @Override
        public void configure(Map<String, ?> configs) {
        }

        @Override
        public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
            Map<String, String> tags = new LinkedHashMap<>();
            if (!principal.getName().isEmpty()) {
                tags.put("group", group(principal.getName()));
                tags.put("client-id", clientId);
            }
            return tags;
        }

        @Override
        public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
            return limits.get(type + "/" + tags.getOrDefault("group", ""));
        }

        @Override
        public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double bound) {
            limits.put(key(type, entity), bound);
        }

        @Override
        public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
            limits.remove(key(type, entity));
        }

        @Override
        public boolean quotaResetRequired(ClientQuotaType type) {
            return stale.remove(type);
        }

        @Override
        @SuppressWarnings("removal") // since 4.4
        public boolean updateClusterMetadata(Cluster cluster) {
            return false;
        }

        @Override
        public void close() {
        }
    }
}
