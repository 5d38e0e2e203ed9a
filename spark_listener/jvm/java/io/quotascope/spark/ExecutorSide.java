package io.quotascope.spark;

import java.util.AbstractMap.SimpleEntry;
import java.util.Map;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;

/** Reports the throttle times of the Kafka clients of an executor's JVM to the driver. */
final class ExecutorSide implements ExecutorPlugin {
  private Sampler sampler;

  @Override
  public void init(PluginContext plugin, Map<String, String> extra) {
    try {
      String id = plugin.executorID();
      if (!id.equals(DriverSide.ID)) { // the executor of a local master is the driver
        sampler = new Sampler(totals -> plugin.send(new SimpleEntry<>(id, totals)));
        sampler.start(Interval.seconds(extra.getOrDefault(DriverSide.INTERVAL, "1")), () -> {});
      }
    } catch (Throwable error) {
      Trouble.with("an executor's Kafka clients are not read", error);
    }
  }

  @Override
  public void shutdown() {
    if (sampler != null) {
      sampler.stop();
    }
  }
}
