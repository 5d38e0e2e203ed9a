package org.apache.kafka.common.metrics;

public class Metrics {
  public native Sensor getSensor(String name);
}
