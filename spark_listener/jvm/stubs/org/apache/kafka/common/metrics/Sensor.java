package org.apache.kafka.common.metrics;

import org.apache.kafka.common.MetricName;

public final class Sensor {
  public native boolean add(MetricName name, MeasurableStat stat);
}
