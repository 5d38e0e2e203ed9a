import java.util.function.LongConsumer;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.network.Request;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;

/** A request in a broker of Kafka since 4.4, whose request layer is in Java. */
final class Message {
    private static final String CALLBACK = "recordNetworkThreadTimeCallback";
    private final Request request;
    private final Object nobody;

    /** Any request of this client whose handling took that long. */
    Message(String user, String clientId, long handlerNanos) throws ReflectiveOperationException {
        request = new Request(0, Requests.context(user, clientId), 0, MemoryPool.NONE, Requests.body(), null);
        request.requestDequeueTimeNanos(0);
        request.apiLocalCompleteTimeNanos(handlerNanos);
        nobody = Internals.field(request, Request.class, CALLBACK);
    }

    int throttleMs(ClientRequestQuotaManager manager, long nowMs) {
        return manager.maybeRecordAndGetThrottleTimeMs(request, nowMs);
    }

    void exempt(ClientRequestQuotaManager manager) {
        manager.maybeRecordExempt(request);
    }

    /** Takes the network thread's time, if a quota listens; whether one does. */
    boolean network(long nanos) throws ReflectiveOperationException {
        LongConsumer callback = (LongConsumer) Internals.field(request, Request.class, CALLBACK);
        callback.accept(nanos);
        return callback != nobody;
    }
}
