import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.NetworkClient;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.network.ChannelState;
import org.apache.kafka.common.network.NetworkReceive;
import org.apache.kafka.common.network.NetworkSend;
import org.apache.kafka.common.network.Selectable;
import org.apache.kafka.common.network.TransferableChannel;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** A client's network layer over a network that is always there, with one node. */
final class ClientSession implements Replay.Session {
    private final ManualClock clock;
    private final Network network = new Network();
    private final Node node = new Node(0, "127.0.0.1", 1);
    private final Deque<ClientRequest> unanswered = new ArrayDeque<>();
    private final NetworkClient client;

    ClientSession(Line line) {
        clock = new ManualClock(line.integer());
        client = Clients.of(network, node, clock);
        connect();
    }

    @Override
    public String apply(String operation, Line line) {
        clock.step(line.integer());
        long now = clock.milliseconds();
        String answer = switch (operation) {
            case "send" -> send(ApiKeys.forId(line.small()), (short) line.integer(), line.small(), now);
            case "answer" -> answer(line.small(), now);
            case "poll" -> poll(now);
            default -> throw new IllegalArgumentException(operation);
        };
        String id = node.idString();
        return String.join(" ", answer, Wire.flag(client.isReady(node, now)), String.valueOf(client.throttleDelayMs(node, now)),
            String.valueOf(client.pollDelayMs(node, now)), String.valueOf(client.inFlightRequestCount(id)),
            Wire.flag(client.leastLoadedNode(now).node() != null));
    }

    private String send(ApiKeys api, short version, int timeoutMs, long now) {
        if (!client.isReady(node, now)) {
            return "throttled";
        }
        AbstractRequest request = AbstractRequest.parseRequest(
            api, version, MessageUtil.toByteBufferAccessor(api.messageType.newRequest(), version)).request;
        ClientRequest sent = client.newClientRequest(node.idString(), new Ready(api, version, request), now, true, timeoutMs, null);
        client.send(sent, now);
        unanswered.add(sent);
        return poll(now);
    }

    private String answer(int throttleMs, long now) {
        ClientRequest request = unanswered.poll();
        if (request == null) {
            return "none";
        }
        short version = request.requestBuilder().latestAllowedVersion();
        AbstractResponse response = AbstractResponse.parseResponse(
            request.apiKey(), MessageUtil.toByteBufferAccessor(request.apiKey().messageType.newResponse(), version), version);
        response.maybeSetThrottleTimeMs(throttleMs);
        ByteBuffer header = bytes(new ResponseHeaderData().setCorrelationId(request.correlationId()),
            request.apiKey().responseHeaderVersion(version));
        ByteBuffer body = bytes(response.data(), version);
        ByteBuffer both = ByteBuffer.allocate(header.remaining() + body.remaining()).put(header).put(body).flip();
        network.received.add(new NetworkReceive(node.idString(), both));
        return poll(now);
    }

    private static ByteBuffer bytes(Message message, short version) {
        return MessageUtil.toByteBufferAccessor(message, version).buffer();
    }

    private String poll(long now) {
        client.poll(0, now);
        network.received.clear();
        if (!network.closed) {
            return "ok";
        }
        unanswered.clear();
        connect();
        return "lost";
    }

    private void connect() {
        long now = clock.milliseconds();
        client.ready(node, now);
        client.poll(0, now);
        network.connected.clear();
        network.closed = false;
    }

    /** A request that was made before. */
    private static final class Ready extends AbstractRequest.Builder<AbstractRequest> {
        private final AbstractRequest request;

        Ready(ApiKeys api, short version, AbstractRequest request) {
            super(api, version);
            this.request = request;
        }

        @Override
        public AbstractRequest build(short version) {
            return request;
        }
    }

    /** Connects at once and delivers what it is given. */
    private static final class Network implements Selectable {
        private static final TransferableChannel DEVNULL = (TransferableChannel) Proxy.newProxyInstance(
            TransferableChannel.class.getClassLoader(), new Class<?>[] {TransferableChannel.class}, (proxy, method, arguments) -> swallow(arguments));
        private final List<NetworkReceive> received = new ArrayList<>();
        private final List<String> connected = new ArrayList<>();
        private boolean closed;

        private static Object swallow(Object[] arguments) {
            if (arguments == null) {
                return false; // nothing is pending
            }
            long size = 0;
            for (ByteBuffer buffer : (ByteBuffer[]) arguments[0]) {
                size += buffer.remaining();
                buffer.position(buffer.limit());
            }
            return size;
        }

        @Override
        public void connect(String id, InetSocketAddress address, int sendBuffer, int receiveBuffer) {
            connected.add(id);
        }

        @Override
        public void close(String id) {
            closed = true;
        }

        @Override
        public Collection<NetworkReceive> completedReceives() {
            return received;
        }

        @Override
        public List<String> connected() {
            return connected;
        }

        @Override
        public boolean isChannelReady(String id) {
            return true;
        }

        @Override
        public List<NetworkSend> completedSends() {
            return List.of();
        }

        @Override
        public Map<String, ChannelState> disconnected() {
            return Map.of();
        }

        @Override
        public void send(NetworkSend send) {
            try {
                send.writeTo(DEVNULL);
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }

        @Override
        public void poll(long timeout) {
        }

        @Override
        public void wakeup() {
        }

        @Override
        public void close() {
        }

        @Override
        public void mute(String id) {
        }

        @Override
        public void unmute(String id) {
        }

        @Override
        public void muteAll() {
        }

        @Override
        public void unmuteAll() {
        }
    }
}
