package io.quotascope.spark;

import java.util.Set;
import org.apache.spark.Success$;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskResultLost$;
import org.apache.spark.executor.ExecutorMetrics;
import org.apache.spark.scheduler.JobSucceeded$;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.SparkListenerUnpersistRDD;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskLocality;

/** Prints what a queue gives of seven events: {@code queued CAPACITY SUCCESSES} of {@link Facts}. */
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

  private static TaskInfo task(int attempt) {
    return new TaskInfo(1L, 1, attempt, 1, 1L, "driver", "localhost", TaskLocality.ANY(), false);
  }

  private static SparkListenerTaskEnd ended(TaskEndReason reason) {
    return new SparkListenerTaskEnd(1, 0, "ResultTask", reason, task(0), new ExecutorMetrics(), null);
  }
}
