package io.quotascope.spark;

import java.util.Set;
import org.apache.spark.Success$;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.TaskResultLost$;
import org.apache.spark.executor.ExecutorMetrics;
import org.apache.spark.scheduler.JobSucceeded$;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.SparkListenerUnpersistRDD;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskLocality;
import scala.collection.immutable.List$;

/**
 * Prints what a queue gives of seven events, {@code queued CAPACITY SUCCESSES} of {@link Facts}, or after each of some operations,
 * {@code queueing CAPACITY SUCCESSES OPERATION…}: a number takes as many events, a name lets one come.
 */
final class Queued {
  private static final String SCHEDULER = "org.apache.spark.scheduler.SparkListener";

  private Queued() {}

  public static void main(String[] arguments) throws NoSuchMethodException {
    Set<String> wanted = Set.of(SCHEDULER + "TaskStart", SCHEDULER + "TaskEnd", SCHEDULER + "JobEnd");
    EventQueue queue = new EventQueue(Integer.parseInt(arguments[0]), wanted, Boolean.parseBoolean(arguments[1]));
    queue.onEvent(new SparkListenerTaskStart(1, 0, task(0)));
    queue.onEvent(ended(Success$.MODULE$));
    queue.onEvent(new SparkListenerTaskStart(1, 0, task(1)));
    queue.onEvent(new SparkListenerTaskStart(1, 1, task(0)));
    queue.onEvent(ended(TaskResultLost$.MODULE$));
    queue.onEvent(new SparkListenerJobEnd(1, 1L, JobSucceeded$.MODULE$));
    queue.onEvent(new SparkListenerUnpersistRDD(1));
    System.out.println(queue.take(99));
  }

  static void operations(String... arguments) throws NoSuchMethodException {
    Set<String> wanted = Set.of(SCHEDULER + "TaskStart", SCHEDULER + "TaskEnd", SCHEDULER + "JobEnd");
    EventQueue queue = new EventQueue(Integer.parseInt(arguments[0]), wanted, Boolean.parseBoolean(arguments[1]));
    for (int index = 2; index < arguments.length; index++) {
      switch (arguments[index]) {
        case "first": queue.onEvent(new SparkListenerTaskStart(1, 0, task(0))); break;
        case "repeated": queue.onEvent(new SparkListenerTaskStart(1, 0, task(1))); break;
        case "resubmitted": queue.onEvent(new SparkListenerTaskStart(1, 1, task(0))); break;
        case "succeeded": queue.onEvent(ended(Success$.MODULE$)); break;
        case "failed": queue.onEvent(ended(TaskResultLost$.MODULE$)); break;
        case "huge":
          queue.onEvent(ended(new TaskKilled("x".repeat(1_000_001), List$.MODULE$.empty(), List$.MODULE$.empty(), List$.MODULE$.empty())));
          break;
        case "broken": queue.onEvent(new SparkListenerTaskStart(1, 1, null)); break;
        case "unwanted": queue.onEvent(new SparkListenerUnpersistRDD(1)); break;
        default: System.out.println(queue.take(Integer.parseInt(arguments[index])));
      }
    }
  }

  private static TaskInfo task(int attempt) {
    return new TaskInfo(1L, 1, attempt, 1, 1L, "driver", "localhost", TaskLocality.ANY(), false);
  }

  private static SparkListenerTaskEnd ended(TaskEndReason reason) {
    return new SparkListenerTaskEnd(1, 0, "ResultTask", reason, task(0), new ExecutorMetrics(), null);
  }
}
