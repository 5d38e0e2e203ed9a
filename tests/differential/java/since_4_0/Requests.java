import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
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

/** Requests as the quota managers see them. */
final class Requests {
    private static final short VERSION = 0;
    private static final Map<String, Session> SESSIONS = new HashMap<>();

    private Requests() {
    }

    static Session session(String user) {
        return SESSIONS.computeIfAbsent(user, name -> new Session(principal(name), InetAddress.getLoopbackAddress()));
    }

    /** Of any request of this client. */
    static RequestContext context(String user, String clientId) {
        RequestHeader header = new RequestHeader(ApiKeys.LIST_GROUPS, VERSION, clientId, 1);
        return new RequestContext(header, "", InetAddress.getLoopbackAddress(), principal(user),
            new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    static ByteBuffer body() {
        return new ListGroupsRequest.Builder(new ListGroupsRequestData()).build(VERSION).serialize().buffer();
    }

    static RequestHeader createTopics(short version, String clientId) {
        return new RequestHeader(ApiKeys.CREATE_TOPICS, version, clientId, 1);
    }

    private static KafkaPrincipal principal(String user) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
    }
}
