package io.quotascope.spark;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;

/**
 * Collects what the executors report, reads the clients of the driver's own JVM, where a local master has its tasks, and shows the application in Spark's own
 * metrics system.
 */
final class DriverSide implements DriverPlugin {
  static final String ID = "driver"; // SparkContext.DRIVER_IDENTIFIER
  static final String INTERVAL = "intervalSeconds";

  private final Board board = new Board();
  private Sampler sampler;
  private volatile JobMetrics metrics;

  @Override
  public Map<String, String> init(SparkContext context, PluginContext plugin) {
    try { // before the first reading, which shows its result in them
      metrics = new JobMetrics(plugin.metricRegistry());
      context.addSparkListener(metrics);
    } catch (Throwable error) {
      Trouble.with("Spark's metrics system does not show this application", error);
    }
    String seconds = "1";
    try {
      seconds = plugin.conf().get(Interval.PROPERTY, seconds);
      sampler = new Sampler(totals -> board.put(ID, totals, Clock.nowMs()));
      board.refreshedBy(sampler::sample);
      sampler.start(Interval.seconds(seconds), this::showThrottles);
    } catch (Throwable error) {
      Trouble.with("the driver's Kafka clients are not read", error);
    }
    return Collections.singletonMap(INTERVAL, seconds);
  }

  private void showThrottles() {
    JobMetrics shown = metrics;
    if (shown == null) {
      return; // said already
    }
    try {
      shown.throttles(board.totals());
    } catch (Throwable error) {
      Trouble.with("Spark's metrics system does not show throttle times", error);
    }
  }

  @Override
  public void registerMetrics(String application, PluginContext plugin) {
    Board.show(application, board);
    Trouble.none(
        "quotascope counts the throttle times of the Kafka clients of " + application + ": metrics kafkaThrottledMs.* and kafkaThrottledResponses.* of the source "
            + "plugin." + ThrottlePlugin.class.getName() + " in Spark's metrics system (spark.ui.prometheus.enabled: /metrics/prometheus of its UI)");
  }

  @Override
  @SuppressWarnings("unchecked")
  public Object receive(Object message) {
    try {
      Map.Entry<String, Map<String, long[]>> report = (Map.Entry<String, Map<String, long[]>>) message;
      board.put(report.getKey(), report.getValue(), Clock.nowMs());
    } catch (Throwable error) {
      Trouble.with("an executor's report cannot be read", error);
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
