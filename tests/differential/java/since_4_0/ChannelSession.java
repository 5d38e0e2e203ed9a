import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.network.KafkaChannel;
import org.apache.kafka.common.network.KafkaChannel.ChannelMuteEvent;
import org.apache.kafka.common.network.TransportLayer;

/** A connection without a network, and its mute state. */
final class ChannelSession implements Replay.Session {
    private final KafkaChannel channel;

    ChannelSession() {
        TransportLayer silent = (TransportLayer) Proxy.newProxyInstance(
            TransportLayer.class.getClassLoader(), new Class<?>[] {TransportLayer.class}, (proxy, method, arguments) -> null);
        channel = new KafkaChannel("", silent, () -> null, 0, MemoryPool.NONE, null);
    }

    @Override
    public String apply(String operation, Line line) throws Exception {
        line.integer(); // channels know no time
        String answer = switch (operation) {
            case "mute" -> String.valueOf(call("mute"));
            case "unmute" -> call("maybeUnmute").toString();
            case "event" -> event(ChannelMuteEvent.valueOf(line.word()));
            default -> throw new IllegalArgumentException(operation);
        };
        return answer + " " + channel.muteState();
    }

    private String event(ChannelMuteEvent event) {
        try {
            channel.handleChannelMuteEvent(event);
            return "ok";
        } catch (IllegalStateException impossible) {
            return "impossible";
        }
    }

    private Object call(String name) throws IllegalAccessException, NoSuchMethodException, InvocationTargetException {
        Method method = KafkaChannel.class.getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(channel);
    }
}
