import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import kafka.network.RequestChannel;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.requests.ListGroupsRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import scala.Option;

/** Requests as the quota managers of Kafka up to 3.7 see them: most of their methods take whole ones. */
final class Requests {
    private static final short VERSION = 0;
    private static final Map<String, RequestChannel.Session> SESSIONS = new HashMap<>();

    private Requests() {
    }

    static RequestChannel.Session session(String user) {
        return SESSIONS.computeIfAbsent(user,
            name -> new RequestChannel.Session(principal(name), InetAddress.getLoopbackAddress()));
    }

    /** Any request of this client. */
    static RequestChannel.Request any(String user, String clientId) {
        AbstractRequest body = new ListGroupsRequest.Builder(new ListGroupsRequestData()).build(VERSION);
        return request(user, new RequestHeader(ApiKeys.LIST_GROUPS, VERSION, clientId, 1), body.serialize());
    }

    static RequestChannel.Request createTopics(String user, short version, String clientId) {
        AbstractRequest body = new CreateTopicsRequest.Builder(new CreateTopicsRequestData()).build(version);
        return request(user, new RequestHeader(ApiKeys.CREATE_TOPICS, version, clientId, 1), body.serialize());
    }

    private static RequestChannel.Request request(String user, RequestHeader header, ByteBuffer body) {
        RequestContext context = new RequestContext(header, "", InetAddress.getLoopbackAddress(), principal(user),
            new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        return new RequestChannel.Request(0, context, 0, MemoryPool.NONE, body, null, Option.empty());
    }

    private static KafkaPrincipal principal(String user) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
    }
}
