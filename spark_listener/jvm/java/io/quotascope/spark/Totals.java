package io.quotascope.spark;

import java.util.HashMap;
import java.util.Map;

/** Counts by client, as they travel: ms, responses, longest, longest of late. */
final class Totals {
  private Totals() {}

  static void add(Map<String, long[]> sums, Map<String, long[]> more) {
    more.forEach((key, counts) -> sums.merge(key, counts, Totals::sum));
  }

  /** What was counted after `before`. The longest throttle time may be from before, but is at most the sum of those after it. */
  static HashMap<String, long[]> since(Map<String, long[]> before, Map<String, long[]> now) {
    HashMap<String, long[]> later = new HashMap<>();
    now.forEach((key, counts) -> {
      long[] old = before.get(key);
      if (old == null) {
        later.put(key, counts);
      } else if (counts[1] > old[1] || counts[0] > old[0]) {
        long ms = counts[0] - old[0];
        later.put(key, new long[] {ms, counts[1] - old[1], Math.min(counts[2], ms), Math.min(counts[3], ms)});
      }
    });
    return later;
  }

  private static long[] sum(long[] one, long[] other) {
    return new long[] {
      one[0] + other[0], one[1] + other[1], Math.max(one[2], other[2]), Math.max(one[3], other[3])
    };
  }
}
