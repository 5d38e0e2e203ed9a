package io.quotascope.spark;

import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** The last report of each executor of one application. That of a lost executor stays counted. */
final class Board {
  private static final int APPLICATIONS = 8;
  private static final int EXECUTORS = 256;
  private static final long LOST_MS = (long) (2_000 * Interval.MOST); // one that reports again would be counted twice
  private static final Map<String, Board> BOARDS = new LinkedHashMap<>();

  private final Map<String, Report> executors = new HashMap<>();
  private final Map<String, long[]> lost = new HashMap<>();
  private volatile Runnable refresh = () -> {};

  /** Throttle times of an executor by client, and when it reported them. */
  private static final class Report {
    final Map<String, long[]> totals;
    final long atMs;

    Report(Map<String, long[]> totals, long atMs) {
      this.totals = totals;
      this.atMs = atMs;
    }
  }

  /** The JVM of a driver may see many applications, one after the other; the numbers of the last ones stay readable. */
  static void show(String application, Board board) {
    synchronized (BOARDS) {
      BOARDS.put(application, board);
      Iterator<String> oldest = BOARDS.keySet().iterator();
      while (BOARDS.size() > APPLICATIONS) {
        oldest.next();
        oldest.remove();
      }
    }
  }

  static Board of(String application) {
    synchronized (BOARDS) {
      return BOARDS.get(application);
    }
  }

  /** What is to be done before the numbers are read. */
  void refreshedBy(Runnable refresh) {
    this.refresh = refresh;
  }

  synchronized void put(String executor, Map<String, long[]> totals, long nowMs) {
    executors.put(executor, new Report(totals, nowMs));
    if (executors.size() > EXECUTORS) {
      executors.values().removeIf(report -> fold(report, nowMs));
    }
  }

  Map<String, long[]> totals() {
    refresh.run();
    return sum();
  }

  private synchronized Map<String, long[]> sum() {
    Map<String, long[]> sums = new HashMap<>(lost);
    executors.values().forEach(report -> Totals.add(sums, report.totals));
    return sums;
  }

  private boolean fold(Report report, long nowMs) {
    boolean gone = nowMs - report.atMs > LOST_MS;
    if (gone) {
      Totals.add(lost, report.totals);
    }
    return gone;
  }
}
