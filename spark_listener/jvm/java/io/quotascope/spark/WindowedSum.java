package io.quotascope.spark;

import java.util.ArrayDeque;

/**
 * The sum of all that went into an average of Kafka, from readings of the average and of how many values there were ever.
 *
 * The average is over two or three samples of 30 s; older ones are dropped as a whole, at a moment that nobody tells. But the values
 * are whole numbers: a number of values times their average is whole for the right number, and for hardly another. So every reading
 * gives the sum of the window, and its growth is what is new. Where more than one number fits, the one that drops whole samples does.
 */
final class WindowedSum {
  private static final long SAMPLE_MS = 30_000;
  private static final long OLDEST_MS = 5 * SAMPLE_MS;
  /** Responses that the connection has counted and the average has not, for they came during the reading. */
  private static final int MOST_PENDING = 3;
  private static final double WHOLE = 1e-6;

  /** What came between two readings. */
  private static final class Batch {
    final long atMs;
    final long count;
    final double sum;
    final boolean startsSample;

    Batch(long atMs, long count, double sum, boolean startsSample) {
      this.atMs = atMs;
      this.count = count;
      this.sum = sum;
      this.startsSample = startsSample;
    }
  }

  private final ArrayDeque<Batch> batches = new ArrayDeque<>();
  private long seen;
  private long dropped; // of the values in `batches`, those that the average has forgotten
  private long sampleMs = Long.MIN_VALUE;
  private double sum;
  private double most;

  /** Take in a reading, and return the sum of all values so far. */
  double observe(long nowMs, long count, double average) {
    if (count < seen) { // another client of the same name
      batches.clear();
      seen = 0;
      dropped = 0;
    }
    forget(nowMs);
    if (Double.isNaN(average)) { // everything is forgotten
      dropped = held();
    } else {
      take(nowMs, count - seen, average);
    }
    most = Math.max(most, sum);
    return Math.rint(most);
  }

  private void take(long nowMs, long added, double average) {
    long held = held();
    for (long pending = 0; pending <= Math.min(added, MOST_PENDING); pending++) {
      if (fits(average, held - dropped + added - pending, dropped)) {
        add(nowMs, added - pending, average);
        return;
      }
    }
    for (long pending = 0; pending <= Math.min(added, MOST_PENDING); pending++) {
      long fit = nearestFit(nowMs, held + added - pending, average);
      if (fit >= 0) {
        dropped = fit;
        add(nowMs, added - pending, average);
        return;
      }
    }
    append(nowMs, added, average * added);
  }

  private boolean fits(double average, long count, long drop) {
    double window = average * count;
    return count >= 0 && Math.abs(window - Math.rint(window)) < WHOLE && window > kept(drop, false) - 1;
  }

  /** How many of the oldest values to leave out so that the sum is whole: close to where a sample begins; -1 when none does. */
  private long nearestFit(long nowMs, long count, double average) {
    long best = -1;
    long distance = Long.MAX_VALUE;
    long before = 0;
    long last = 0;
    for (Batch batch : batches) {
      if (nowMs - batch.atMs < SAMPLE_MS) { // what is younger than a sample is in the window
        break;
      }
      long slack = Math.max(last, batch.count);
      if (batch.startsSample) {
        for (long drop = Math.max(0, before - slack); drop <= before + slack; drop++) {
          long away = Math.abs(drop - before);
          if (drop > dropped && away < distance && fits(average, count - drop, drop)) {
            best = drop;
            distance = away;
          }
        }
      }
      before += batch.count;
      last = batch.count;
    }
    return best;
  }

  private void add(long nowMs, long added, double average) {
    double window = average * (held() - dropped + added);
    append(nowMs, added, window - kept(dropped, true));
  }

  private void append(long nowMs, long added, double more) {
    boolean starts = added > 0 && (batches.isEmpty() || nowMs - sampleMs >= SAMPLE_MS);
    if (starts) {
      sampleMs = nowMs;
    }
    if (added > 0 || more != 0) {
      batches.add(new Batch(nowMs, added, more, starts));
    }
    seen += added;
    sum += more;
  }

  /** The sum of what is left without the oldest values; a batch that is cut counts in part, or not at all. */
  private double kept(long drop, boolean parts) {
    double kept = 0;
    long left = drop;
    for (Batch batch : batches) {
      long cut = Math.min(left, batch.count);
      left -= cut;
      if (cut == 0) {
        kept += batch.sum;
      } else if (parts) {
        kept += batch.sum * (batch.count - cut) / batch.count;
      }
    }
    return kept;
  }

  private long held() {
    return batches.stream().mapToLong(batch -> batch.count).sum();
  }

  private void forget(long nowMs) {
    while (!batches.isEmpty() && nowMs - batches.peek().atMs > OLDEST_MS) {
      dropped = Math.max(0, dropped - batches.remove().count);
    }
  }
}
