package org.apache.kafka.common;

import java.util.Map;

public final class MetricName {
  public MetricName(String name, String group, String description, Map<String, String> tags) {}

  public native String name();

  public native String group();

  public native Map<String, String> tags();
}
