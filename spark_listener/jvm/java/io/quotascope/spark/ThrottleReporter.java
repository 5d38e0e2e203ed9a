package io.quotascope.spark;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.spark.TaskContext;

/**
 * A Kafka client's reporter (`kafka.metric.reporters`) that counts each throttle time that brokers report to the client, exactly.
 *
 * The client's sensor of throttle times keeps an average and a maximum; here it gets a sum, too. What leads to it is private to
 * Kafka: the one metric of the registry itself holds the registry. Where a client is built otherwise, it works as before, and the
 * plugin estimates from its MBean.
 */
public final class ThrottleReporter implements MetricsReporter {
  /** The metric that says that a client is counted here. */
  static final String MARK = "quotascope-throttle-time-total";

  private String clientId = "";
  private String user = "";
  private Metrics registry;

  @Override
  public void configure(Map<String, ?> config) {
    try {
      clientId = text(config.get("client.id"));
      user = Labels.user(text(config.get("sasl.jaas.config")));
    } catch (Throwable error) {
      Trouble.with("a Kafka client does not report its name", error);
    }
  }

  @Override
  public void init(List<KafkaMetric> metrics) {
    metrics.forEach(this::metricChange);
  }

  @Override
  public void metricChange(KafkaMetric metric) {
    try {
      MetricName name = metric.metricName();
      if (name.group().equals("kafka-metrics-count")) {
        registry = holder(metric.measurable());
      } else if (name.name().equals("produce-throttle-time-avg")) {
        count("write", "produce-throttle-time", name);
      } else if (name.name().equals("fetch-throttle-time-avg")) {
        count("read", "fetch-throttle-time", name);
      }
    } catch (Throwable error) {
      Trouble.with("the throttle times of a Kafka client are estimated, not counted", error);
    }
  }

  @Override
  public void metricRemoval(KafkaMetric metric) {}

  @Override
  public void close() {}

  private void count(String side, String sensorName, MetricName average) {
    Sensor sensor = registry.getSensor(sensorName);
    MetricName name = new MetricName(MARK, average.group(), "The sum of all throttle times in ms.", average.tags());
    String query = side.equals("read") ? query() : "";
    Account account = Reported.LEDGER.account(query, user, Labels.client(clientId), side);
    sensor.add(name, new Sum(account));
  }

  /** The id of the streaming query whose task makes this client. The connector lets queries share producers, but no consumers. */
  private static String query() {
    try {
      TaskContext task = TaskContext.get();
      String id = task == null ? null : task.getLocalProperty("sql.streaming.queryId");
      return id == null ? "" : id;
    } catch (LinkageError error) { // not a task of Spark
      return "";
    }
  }

  private static Metrics holder(Object measurable) throws IllegalAccessException {
    for (Field field : measurable.getClass().getDeclaredFields()) {
      if (field.getType().equals(Metrics.class)) {
        field.setAccessible(true);
        return (Metrics) field.get(measurable);
      }
    }
    throw new IllegalStateException("the registry is not where it was");
  }

  private static String text(Object value) {
    return value instanceof String ? (String) value : "";
  }

  /** A sum of what a sensor records. */
  private static final class Sum implements MeasurableStat {
    private final Account account;
    private volatile double sum;

    Sum(Account account) {
      this.account = account;
    }

    @Override
    public void record(MetricConfig config, double value, long timeMs) {
      if (value > 0) { // the sensor records one response at a time
        sum += value;
        account.add((long) value, 1, (long) value, Clock.nowMs());
      }
    }

    @Override
    public double measure(MetricConfig config, long nowMs) {
      return sum;
    }
  }
}
