package io.quotascope.spark;

import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** What the executors of one application told the driver last. One that is lost stays counted. */
final class Board {
  private static final int APPLICATIONS = 8;
  private static final int EXECUTORS = 256;
  private static final long LOST_MS = 600_000; // executors tell something every minute
  private static final Map<String, Board> BOARDS = new LinkedHashMap<>();

  private final Map<String, Told> executors = new HashMap<>();
  private final Map<String, long[]> lost = new HashMap<>();
  private volatile Runnable refresh = () -> {};

  /** The last word of an executor. */
  private static final class Told {
    final Map<String, long[]> totals;
    final long atMs;

    Told(Map<String, long[]> totals, long atMs) {
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

  synchronized void told(String executor, Map<String, long[]> totals, long nowMs) {
    executors.put(executor, new Told(totals, nowMs));
    if (executors.size() > EXECUTORS) {
      executors.values().removeIf(told -> fold(told, nowMs));
    }
  }

  Map<String, long[]> totals() {
    refresh.run();
    return sum();
  }

  private synchronized Map<String, long[]> sum() {
    Map<String, long[]> sums = new HashMap<>(lost);
    executors.values().forEach(told -> Totals.add(sums, told.totals));
    return sums;
  }

  private boolean fold(Told told, long nowMs) {
    boolean gone = nowMs - told.atMs > LOST_MS;
    if (gone) {
      Totals.add(lost, told.totals);
    }
    return gone;
  }
}
