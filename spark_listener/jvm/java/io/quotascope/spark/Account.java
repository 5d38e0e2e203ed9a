package io.quotascope.spark;

/** The throttle times of one client: their sum in ms, the responses that reported them, the longest, and the longest of the last minute or two. */
final class Account {
  private static final long SPAN_MS = 60_000;

  private long throttledMs;
  private long responses;
  private long longestMs;
  private long recentMs;
  private long beforeMs;
  private long turnedMs;

  synchronized void add(long ms, long count, long longest, long nowMs) {
    turn(nowMs);
    throttledMs += ms;
    responses += count;
    longestMs = Math.max(longestMs, longest);
    recentMs = Math.max(recentMs, longest);
  }

  synchronized long[] totals(long nowMs) {
    turn(nowMs);
    return new long[] {throttledMs, responses, longestMs, Math.max(recentMs, beforeMs)};
  }

  private void turn(long nowMs) {
    long spans = (nowMs - turnedMs) / SPAN_MS;
    if (spans > 0) {
      beforeMs = spans == 1 ? recentMs : 0;
      recentMs = 0;
      turnedMs += spans * SPAN_MS;
    }
  }
}
