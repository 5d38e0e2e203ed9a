package io.quotascope.spark;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;

/** Collects what the executors tell, and reads the clients of the driver's own JVM, where a local master has its tasks. */
final class DriverSide implements DriverPlugin {
  static final String ID = "driver"; // SparkContext.DRIVER_IDENTIFIER
  static final String INTERVAL = "intervalSeconds";

  private final Board board = new Board();
  private Sampler sampler;

  @Override
  public Map<String, String> init(SparkContext context, PluginContext plugin) {
    String seconds = "1";
    try {
      seconds = plugin.conf().get(Interval.PROPERTY, seconds);
      sampler = new Sampler(totals -> board.told(ID, totals, Clock.nowMs()));
      board.refreshedBy(sampler::sample);
      sampler.start(Interval.seconds(seconds));
    } catch (Throwable error) {
      Trouble.with("the driver's Kafka clients are not read", error);
    }
    return Collections.singletonMap(INTERVAL, seconds);
  }

  @Override
  public void registerMetrics(String application, PluginContext plugin) {
    Board.show(application, board);
  }

  @Override
  @SuppressWarnings("unchecked")
  public Object receive(Object message) {
    try {
      Map.Entry<String, Map<String, long[]>> told = (Map.Entry<String, Map<String, long[]>>) message;
      board.told(told.getKey(), told.getValue(), Clock.nowMs());
    } catch (Throwable error) {
      Trouble.with("an executor is not understood", error);
    }
    return null;
  }

  @Override
  public void shutdown() {
    if (sampler != null) {
      sampler.stop();
      board.refreshedBy(() -> {}); // what comes later in this JVM is of another application
    }
  }
}
