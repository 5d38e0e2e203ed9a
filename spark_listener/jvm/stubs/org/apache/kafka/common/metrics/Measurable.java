package org.apache.kafka.common.metrics;

public interface Measurable {
  double measure(MetricConfig config, long nowMs);
}
