import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.QuotaConfig;

/** What a release says of itself, as JSON in one line: APIs, errors, keys of quotas, levels of the metadata version, defaults. */
final class FactsSession implements Replay.Session {
    @Override
    public String apply(String operation, Line line) {
        line.integer(); // facts know no time
        Map<String, String> apis = new TreeMap<>();
        for (ApiKeys api : ApiKeys.values()) {
            apis.put(api.name(), api(api));
        }
        Map<String, String> errors = new TreeMap<>();
        for (Errors error : Errors.values()) {
            errors.put(error.name(), Integer.toString(error.code()));
        }
        Map<String, String> levels = new TreeMap<>();
        for (MetadataVersion version : MetadataVersion.values()) {
            levels.put(version.toString(), Integer.toString(version.featureLevel()));
        }
        return object(Map.of("apis", object(apis), "errors", object(errors), "metadata_versions", object(levels),
            "latest_production", text(MetadataVersion.latestProduction().toString()),
            "client_quotas", object(types(QuotaConfig.userAndClientQuotaConfigs())), "ip_quotas", object(types(QuotaConfig.ipConfigs())),
            "defaults", object(defaults())));
    }

    /** What holds where a configuration of a broker, a metric or an Admin client says nothing. */
    private static Map<String, String> defaults() {
        Map<String, String> values = new TreeMap<>();
        QuotaConfig.CONFIG_DEF.defaultValues().forEach((name, value) -> values.put(name, value instanceof Number ? value.toString() : "null"));
        MetricConfig metric = new MetricConfig();
        values.put("metrics.num.samples", Integer.toString(metric.samples()));
        values.put("metrics.sample.window.ms", Long.toString(metric.timeWindowMs()));
        Object patience = AdminClientConfig.configDef().defaultValues().get(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG);
        values.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, patience.toString());
        return values;
    }

    private static String api(ApiKeys api) {
        ApiMessageType type = api.messageType;
        boolean field = false;
        List<String> waits = new ArrayList<>();
        for (short version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(true); version++) {
            field |= type.responseSchemas()[version].get("throttle_time_ms") != null;
            AbstractResponse response =
                AbstractResponse.parseResponse(api, MessageUtil.toByteBufferAccessor(type.newResponse(), version), version);
            if (response.shouldClientThrottle(version)) {
                waits.add(Short.toString(version));
            }
        }
        return object(Map.of("key", Integer.toString(api.id), "lowest", Short.toString(type.lowestSupportedVersion()),
            "highest", Short.toString(type.highestSupportedVersion(true)), "throttle_time", Boolean.toString(field),
            "waits", "[" + String.join(", ", waits) + "]", "among_brokers", Boolean.toString(api.clusterAction)));
    }

    private static Map<String, String> types(ConfigDef definition) {
        Map<String, String> types = new TreeMap<>();
        definition.configKeys().forEach((name, key) -> types.put(name, text(key.type.name())));
        return types;
    }

    private static String object(Map<String, String> values) {
        List<String> parts = new ArrayList<>();
        new TreeMap<>(values).forEach((name, value) -> parts.add(text(name) + ": " + value));
        return "{" + String.join(", ", parts) + "}";
    }

    private static String text(String plain) {
        return '"' + plain + '"';
    }
}
