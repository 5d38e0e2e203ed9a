package io.quotascope.spark;

/** Milliseconds that do not go back. */
final class Clock {
  private static final long START = System.nanoTime();

  private Clock() {}

  static long nowMs() {
    return (System.nanoTime() - START) / 1_000_000;
  }
}
