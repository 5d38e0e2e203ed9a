import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF2;

/** A function of SQL whose first task fails once by an error of Kafka's Java client: {@code refused(id, 'quota')}. */
public final class Refused implements UDF2<Long, String, Long> {
  @Override
  public Long call(Long id, String how) {
    TaskContext task = TaskContext.get();
    if (task.partitionId() == 0 && task.attemptNumber() == 0) {
      fail(how);
    }
    return id;
  }

  private static void fail(String how) {
    if (how.equals("quota")) {
      throw new ThrottlingQuotaExceededException(250, "The throttling quota has been exceeded.");
    }
    Map<String, Object> settings = Map.of("bootstrap.servers", how, "group.id", "refused", "default.api.timeout.ms", 300);
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
      consumer.partitionsFor("topic", Duration.ofMillis(300));
    }
  }
}
