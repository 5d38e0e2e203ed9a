package org.apache.kafka.common.metrics;

import org.apache.kafka.common.MetricName;

public final class KafkaMetric {
  public native MetricName metricName();

  public native Measurable measurable();
}
