package io.quotascope.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkFirehoseListener;
import org.apache.spark.Success$;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.util.JsonProtocol;

/**
 * A listener of a driver that keeps events in a bounded queue until they are taken, many at once, as JSON.
 *
 * `attach` loads it into a running driver. On the thread of the bus it never waits and never throws; an event that finds the queue full is lost and counted.
 */
public final class EventQueue extends SparkFirehoseListener {
  /** Characters of JSON; of a longer event, such as a failure with a huge message, the beginning says what is missed. */
  private static final int LONGEST = 1_000_000;

  private static final int BEGINNING = 100;

  private final LinkedBlockingQueue<SparkListenerEvent> events;
  private final Set<String> wanted;
  private final boolean successes;
  private final AtomicLong skipped = new AtomicLong();
  private final AtomicLong refused = new AtomicLong();

  /**
   * @param capacity most events that wait
   * @param wanted classes of the events to keep
   * @param successes keep also successful tasks, and the first start of a task in the first attempt at its stage; otherwise these are only counted
   * @throws NoSuchMethodException when this Spark has no JSON of events, which is private to it
   */
  public EventQueue(int capacity, Set<String> wanted, boolean successes) throws NoSuchMethodException {
    JsonProtocol.class.getMethod("sparkEventToJsonString", SparkListenerEvent.class);
    this.events = new LinkedBlockingQueue<>(capacity);
    this.wanted = Set.copyOf(wanted);
    this.successes = successes;
  }

  @Override
  public void onEvent(SparkListenerEvent event) {
    if (!wanted.contains(event.getClass().getName())) {
      return;
    }
    try {
      if (!successes && isOrdinary(event)) {
        skipped.incrementAndGet();
      } else if (!events.offer(event)) {
        refused.incrementAndGet();
      }
    } catch (Throwable error) { // an event of a Spark that is built otherwise
      refused.incrementAndGet();
    }
  }

  private static boolean isOrdinary(SparkListenerEvent event) {
    if (event instanceof SparkListenerTaskStart start) {
      return start.stageAttemptId() == 0 && start.taskInfo().attemptNumber() == 0;
    }
    return event instanceof SparkListenerTaskEnd end && end.reason() instanceof Success$;
  }

  /**
   * Take the oldest events.
   *
   * @return a line for each event, its JSON, the beginning of too long a one, or nothing where Spark makes none of it; then a line each with the number of
   *     events that were skipped and that were refused so far
   */
  public String take(int most) {
    List<SparkListenerEvent> taken = new ArrayList<>(most);
    events.drainTo(taken, most);
    StringJoiner lines = new StringJoiner("\n");
    taken.forEach(event -> lines.add(json(event)));
    return lines.add(skipped.toString()).add(refused.toString()).toString();
  }

  private static String json(SparkListenerEvent event) {
    try {
      String json = JsonProtocol.sparkEventToJsonString(event);
      return json.length() <= LONGEST ? json : json.substring(0, BEGINNING);
    } catch (Throwable error) {
      return "";
    }
  }
}
