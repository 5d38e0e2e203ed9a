import java.util.Map;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/** Quotas by tenant, which is what a user's name begins with; the configured quotas are ignored. */
public final class TenantQuotas implements ClientQuotaCallback {
    private static final double PRODUCED_BYTES = 20_000;
    private static final double PLENTY = 1e9;

    @Override
    public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        return Map.of("quota.type", type.name(), "tenant", principal.getName() + "'s, \"all\" of *");
    }

    @Override
    public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        return type == ClientQuotaType.PRODUCE ? PRODUCED_BYTES : PLENTY;
    }

    @Override
    public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double limit) {
    }

    @Override
    public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
    }

    @Override
    public boolean quotaResetRequired(ClientQuotaType type) {
        return false;
    }

    @Override
    public boolean updateClusterMetadata(Cluster cluster) {
        return false;
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void close() {
    }
}
