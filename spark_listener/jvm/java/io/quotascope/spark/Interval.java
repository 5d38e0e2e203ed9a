package io.quotascope.spark;

/** How often the Kafka clients of a JVM are read. */
final class Interval {
  static final String PROPERTY = "spark.quotascope.jvm.intervalSeconds";
  private static final double LEAST = 0.05;
  static final double MOST = 3_600;

  private Interval() {}

  /** What the property says; 1 where that is no such time. */
  static double seconds(String text) {
    try {
      double seconds = Double.parseDouble(text);
      if (seconds >= LEAST && seconds <= MOST) { // NaN is not
        return seconds;
      }
      throw new IllegalArgumentException();
    } catch (IllegalArgumentException error) { // a NumberFormatException is one
      Trouble.with(PROPERTY + " is no number of seconds from 0.05 to 3600; it is 1", error);
      return 1;
    }
  }
}
