import kafka.network.RequestChannel;
import kafka.server.ClientQuotaManager;
import kafka.server.ClientQuotaManagerConfig;
import kafka.server.ThrottleCallback;

/** What Kafka since 3.0 names in another way than 2.8. */
final class Throttles {
    private Throttles() {
    }

    static ClientQuotaManagerConfig config(int samples, int windowSeconds) {
        return new ClientQuotaManagerConfig(samples, windowSeconds);
    }

    static void mute(ClientQuotaManager manager, RequestChannel.Request request, int throttleMs, Runnable start, Runnable end) {
        manager.throttle(request, new ThrottleCallback() {
            @Override
            public void startThrottling() {
                start.run();
            }

            @Override
            public void endThrottling() {
                end.run();
            }
        }, throttleMs);
    }
}
