import java.util.List;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.ManualMetadataUpdater;
import org.apache.kafka.clients.MetadataRecoveryStrategy;
import org.apache.kafka.clients.NetworkClient;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.network.Selectable;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.LogContext;

/** The network layer of a client of Kafka up to 4.3. */
final class Clients {
    private static final int NONE = 0;
    private static final int LONG = Integer.MAX_VALUE;

    private Clients() {
    }

    static NetworkClient of(Selectable network, Node node, Time clock) {
        return new NetworkClient(network, new ManualMetadataUpdater(List.of(node)), "client", LONG, NONE, NONE, NONE, NONE, LONG,
            LONG, LONG, clock, false, new ApiVersions(), new LogContext(), MetadataRecoveryStrategy.NONE);
    }
}
