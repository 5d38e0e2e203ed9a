import kafka.network.RequestChannel;
import kafka.server.ClientRequestQuotaManager;
import org.apache.kafka.common.memory.MemoryPool;
import scala.Option;

/** A request in a broker of Kafka up to 4.3, whose request layer is in Scala. */
final class Message {
    private final RequestChannel.Request request;

    /** Any request of this client whose handling took that long. */
    Message(String user, String clientId, long handlerNanos) {
        request = new RequestChannel.Request(
            0, Requests.context(user, clientId), 0, MemoryPool.NONE, Requests.body(), null, Option.empty());
        request.requestDequeueTimeNanos_$eq(0);
        request.apiLocalCompleteTimeNanos_$eq(handlerNanos);
    }

    int throttleMs(ClientRequestQuotaManager manager, long nowMs) {
        return manager.maybeRecordAndGetThrottleTimeMs(request, nowMs);
    }

    void exempt(ClientRequestQuotaManager manager) {
        manager.maybeRecordExempt(request);
    }

    /** Takes the network thread's time, if a quota listens; whether one does. */
    boolean network(long nanos) {
        boolean listens = request.recordNetworkThreadTimeCallback().isDefined();
        if (listens) {
            request.recordNetworkThreadTimeCallback().get().accept(nanos);
        }
        return listens;
    }
}
