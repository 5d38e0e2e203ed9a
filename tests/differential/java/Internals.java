import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;

/** What Kafka's classes keep to themselves and a comparison needs: the turn of the expiry daemon, the names of the sensors. */
final class Internals {
    private Internals() {
    }

    /** One turn of the daemon that removes inactive sensors. */
    static void expire(Metrics metrics) throws ReflectiveOperationException {
        Class<?> task = Class.forName("org.apache.kafka.common.metrics.Metrics$ExpireSensorTask");
        Constructor<?> constructor = task.getDeclaredConstructor(Metrics.class);
        constructor.setAccessible(true);
        Method run = task.getDeclaredMethod("run");
        run.setAccessible(true);
        run.invoke(constructor.newInstance(metrics));
    }

    @SuppressWarnings("unchecked")
    static Set<String> sensors(Metrics metrics) throws ReflectiveOperationException {
        return ((Map<String, Sensor>) field(metrics, Metrics.class, "sensors")).keySet();
    }

    static Object field(Object object, Class<?> owner, String name) throws ReflectiveOperationException {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }
}
