package org.apache.kafka.common.metrics;

import java.util.List;
import java.util.Map;

public interface MetricsReporter {
  void configure(Map<String, ?> config);

  void init(List<KafkaMetric> metrics);

  void metricChange(KafkaMetric metric);

  void metricRemoval(KafkaMetric metric);

  void close();
}
