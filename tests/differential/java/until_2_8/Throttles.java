import kafka.network.RequestChannel;
import kafka.server.ClientQuotaManager;
import kafka.server.ClientQuotaManagerConfig;
import scala.runtime.BoxedUnit;

/** What Kafka 2.8 names in another way: a config with a static default, and a mute that sends responses. */
final class Throttles {
    private Throttles() {
    }

    static ClientQuotaManagerConfig config(int samples, int windowSeconds) {
        return new ClientQuotaManagerConfig(Long.MAX_VALUE, samples, windowSeconds);
    }

    static void mute(ClientQuotaManager manager, RequestChannel.Request request, int throttleMs, Runnable start, Runnable end) {
        manager.throttle(request, throttleMs, response -> {
            (response instanceof RequestChannel.StartThrottlingResponse ? start : end).run();
            return BoxedUnit.UNIT;
        });
    }
}
