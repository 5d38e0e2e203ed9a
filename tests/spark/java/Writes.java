import java.io.StringReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.spark.sql.api.java.UDF3;

/** A function of SQL that writes records of a thousand bytes with a producer of its own: {@code writes('topic', records, 'settings')}. */
public final class Writes implements UDF3<String, Integer, String, Integer> {
  @Override
  public Integer call(String topic, Integer records, String text) throws Exception {
    Properties settings = new Properties();
    settings.load(new StringReader(text));
    ByteArraySerializer bytes = new ByteArraySerializer();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
      for (int record = 0; record < records; record++) {
        producer.send(new ProducerRecord<>(topic, new byte[1_000]));
      }
      producer.flush();
      Thread.sleep(1_500); // as the connector, which keeps its producers
    }
    return records;
  }
}
