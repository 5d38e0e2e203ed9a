package org.apache.spark.api.plugin;

import java.util.Map;

public interface ExecutorPlugin {
  void init(PluginContext plugin, Map<String, String> extra);

  void shutdown();
}
