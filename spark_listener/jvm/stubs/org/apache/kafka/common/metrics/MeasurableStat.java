package org.apache.kafka.common.metrics;

public interface MeasurableStat extends Measurable {
  void record(MetricConfig config, double value, long timeMs);
}
