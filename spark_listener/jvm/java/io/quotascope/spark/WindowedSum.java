package io.quotascope.spark;

import java.util.ArrayDeque;

/**
 * The sum of all that went into an average of Kafka, from readings of the average, the maximum and how many values there were ever.
 *
 * The average is over two or three samples of 30 s; older ones are dropped as a whole, at a moment that Kafka does not report. But the values
 * are whole numbers: a number of values times their average is whole for the right number, and for hardly another. So a reading gives
 * the sum of the window, and its growth is what is new.
 */
final class WindowedSum {
  private static final long SAMPLE_MS = 30_000;
  private static final long OLDEST_MS = 5 * SAMPLE_MS;
  /** Readings without a solution after which an average of another kind is assumed. */
  private static final int MOST_UNSOLVED = 10;
  /** Responses that the connection has counted and the average has not, for they came during the reading. */
  private static final int MOST_PENDING = 2;
  private static final double WHOLE = 1e-6;

  /** What came between two readings. */
  private static final class Batch {
    final long atMs;
    final long count;
    final double sum;
    final double doubt; // how far the sum may be off

    Batch(long atMs, long count, double sum, double doubt) {
      this.atMs = atMs;
      this.count = count;
      this.sum = sum;
      this.doubt = doubt;
    }
  }

  /** A way in which a reading makes sense. */
  private static final class Solution {
    final long drop;
    final long added;
    final double more;
    final double doubt;
    final double penalty;

    Solution(long drop, long added, double more, double doubt, double penalty) {
      this.drop = drop;
      this.added = added;
      this.more = more;
      this.doubt = doubt;
      this.penalty = penalty;
    }
  }

  private final ArrayDeque<Batch> batches = new ArrayDeque<>();
  private long seen;
  private long dropped; // of the values in `batches`, those that the average has forgotten
  private int unsolved;
  private double sum;
  private double most;

  /** Take in a reading, and return the sum of all values so far. */
  double observe(long nowMs, long count, double average, double longest) {
    if (count < seen) { // another client of the same name
      batches.clear();
      seen = 0;
      dropped = 0;
    }
    forget(nowMs);
    if (Double.isNaN(average)) { // everything is forgotten
      dropped = held();
    } else if (average == 0) {
      dropped = Math.max(dropped, untilLastSum());
      append(nowMs, count - seen, 0, 0);
    } else {
      take(nowMs, count - seen, average, longest);
    }
    most = Math.max(most, sum);
    return Math.rint(most);
  }

  private void take(long nowMs, long added, double average, double longest) {
    Solution best = null;
    boolean due = dropped < held() && nowMs - timeOf(dropped) >= 2 * SAMPLE_MS;
    for (int all = 0; all <= 1 && best == null; all++) {
      for (long pending = 0; pending <= Math.min(added, MOST_PENDING); pending++) {
        best = better(best, solve(nowMs, added - pending, average, longest, pending, all == 1 || due));
      }
    }
    unsolved = best == null ? unsolved + 1 : 0;
    if (best != null) {
      dropped = best.drop;
      append(nowMs, best.added, best.more, best.doubt);
    } else {
      append(nowMs, added, unsolved > MOST_UNSOLVED ? average * added : 0, added * longest);
    }
  }

  /** How many of the oldest values to leave out so that the sum is whole; nothing where no number does it. */
  private Solution solve(long nowMs, long added, double average, double longest, long pending, boolean all) {
    Solution best = null;
    long held = held();
    long boundaryMs = timeOf(dropped);
    long before = 0;
    double kept = batches.stream().mapToDouble(batch -> batch.sum).sum();
    double doubt = batches.stream().mapToDouble(batch -> batch.doubt).sum();
    for (Batch batch : batches) {
      kept -= batch.sum;
      doubt -= batch.doubt;
      boolean may = all && nowMs - batch.atMs >= SAMPLE_MS - 1_000;
      long last = may ? before + batch.count - 1 : Math.min(dropped, before + batch.count - 1);
      for (long drop = Math.max(before, dropped); drop <= last; drop++) {
        double part = batch.sum * (before + batch.count - drop) / batch.count;
        double slack = 0.5 + doubt + (drop == before ? batch.doubt : Math.abs(batch.sum) + batch.doubt);
        double window = average * (held - drop + added);
        double more = Math.rint(window) - kept - part;
        if (Math.abs(window - Math.rint(window)) < WHOLE && more > -slack && more < added * longest + slack) {
          double penalty = Math.abs(more) < 0.5 || drop == dropped ? 0 : slack < 1 ? 4 : 6;
          penalty += drop == dropped ? 0 : 1 + Math.min(8, away(batch.atMs - boundaryMs) / 2_000.0);
          best = better(best, new Solution(drop, added, more, slack - doubt - 0.5, penalty + pending / 2.0));
        }
      }
      before += batch.count;
    }
    return best == null ? all(added, average, longest, pending) : best;
  }

  /** Everything was dropped, or there was nothing. */
  private Solution all(long added, double average, double longest, long pending) {
    double window = average * added;
    boolean whole = Math.abs(window - Math.rint(window)) < WHOLE;
    return whole && added > 0 && dropped == held() ? new Solution(held(), added, Math.rint(window), 0, 20 + pending) : null;
  }

  /** How far a time is from the length of a sample or two. */
  private static double away(long ms) {
    return Math.min(Math.abs(ms - SAMPLE_MS), Math.abs(ms - 2 * SAMPLE_MS));
  }

  private static Solution better(Solution one, Solution other) {
    return one == null || other != null && other.penalty < one.penalty ? other : one;
  }

  private long timeOf(long drop) {
    long before = 0;
    for (Batch batch : batches) {
      before += batch.count;
      if (before > drop) {
        return batch.atMs;
      }
    }
    return 0;
  }

  private void append(long nowMs, long added, double more, double doubt) {
    if (added > 0 || more != 0) {
      batches.add(new Batch(nowMs, added, more, doubt));
    }
    seen += added;
    sum += more;
  }

  private long held() {
    return batches.stream().mapToLong(batch -> batch.count).sum();
  }

  private long untilLastSum() {
    long count = 0;
    long found = 0;
    for (Batch batch : batches) {
      count += batch.count;
      found = batch.sum == 0 ? found : count;
    }
    return found;
  }

  private void forget(long nowMs) {
    while (!batches.isEmpty() && nowMs - batches.peek().atMs > OLDEST_MS) {
      dropped = Math.max(0, dropped - batches.remove().count);
    }
  }
}
