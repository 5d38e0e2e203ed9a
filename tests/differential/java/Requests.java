import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import kafka.network.RequestChannel;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ListGroupsRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.network.Session;
import scala.Option;

/** Requests as the quota managers see them. */
final class Requests {
    private static final Map<String, Session> SESSIONS = new HashMap<>();

    private Requests() {
    }

    static Session session(String user) {
        return SESSIONS.computeIfAbsent(user, name -> new Session(principal(name), InetAddress.getLoopbackAddress()));
    }

    /** Any request of this client whose handling took that long. */
    static RequestChannel.Request request(String user, String clientId, long handlerNanos) {
        short version = 0;
        RequestHeader header = new RequestHeader(ApiKeys.LIST_GROUPS, version, clientId, 1);
        RequestContext context = new RequestContext(header, "", InetAddress.getLoopbackAddress(), principal(user),
            new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        RequestChannel.Request request = new RequestChannel.Request(0, context, 0, MemoryPool.NONE,
            new ListGroupsRequest.Builder(new ListGroupsRequestData()).build(version).serialize().buffer(), null, Option.empty());
        request.requestDequeueTimeNanos_$eq(0);
        request.apiLocalCompleteTimeNanos_$eq(handlerNanos);
        return request;
    }

    static RequestHeader createTopics(short version, String clientId) {
        return new RequestHeader(ApiKeys.CREATE_TOPICS, version, clientId, 1);
    }

    private static KafkaPrincipal principal(String user) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
    }
}
