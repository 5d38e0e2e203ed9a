package org.apache.spark.api.plugin;

import java.util.Map;
import org.apache.spark.SparkContext;

public interface DriverPlugin {
  Map<String, String> init(SparkContext context, PluginContext plugin);

  void registerMetrics(String application, PluginContext plugin);

  Object receive(Object message) throws Exception;

  void shutdown();
}
