package io.quotascope.spark;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * A Spark plugin (`spark.plugins`) that counts the throttle times that brokers report to the Kafka clients of the job's JVMs.
 *
 * Each JVM reads its clients once a second and sends absolute counts to the driver. Only Java's types meet Spark's, so that one jar
 * serves Scala 2.12 and 2.13.
 */
public final class ThrottlePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new DriverSide();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorSide();
  }

  /**
   * What is known of an application of this driver, also after its end: a JSON array of pairs of
   * `[query id, user, client id, side]` and `[ms, responses, longest ms, longest ms of late]`; empty text where it has no plugin.
   */
  public static String totals(String application) {
    Board board = Board.of(application);
    return board == null ? "" : Json.pairs(board.totals());
  }
}
