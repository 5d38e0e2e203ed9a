package io.quotascope.spark;

import com.codahale.metrics.Counter;
import com.codahale.metrics.MetricRegistry;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.SparkFirehoseListener;
import org.apache.spark.TaskCommitDenied;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * Counters of an application, of all its sessions, in Spark's own metrics system (Dropwizard): failed attempts by Spark's reason, repeated ones, and throttle
 * times by side and client-id.
 *
 * On the thread of the bus it never waits and never throws.
 */
final class JobMetrics extends SparkFirehoseListener {
  /** As in {@code events/failure.py}: losers of a race, and attempts that were canceled with their stage or job. */
  private static final Pattern NOT_FAILED =
      Pattern.compile("(?s)(.{0,200}another attempt succeeded$|Stage (cancelled|finished)\\b.*|[Jj]ob .{0,100}cancelled\\b.*)");
  /** The lines that name error 89 of Kafka, by Kafka's clients, kafka-python, confluent-kafka and our own admin: first, or after a frame. */
  private static final Pattern QUOTA =
      Pattern.compile(
          "(?:\\A|\n[ \t][^\n]*\n)( {1,40}\\| )?(Caused by: |Suppressed: )?((?:[\\w$]{1,100}\\.){0,9}org\\.apache\\.kafka\\.common\\.errors\\.ThrottlingQuotaExceededException|kafka\\.errors\\.ThrottlingQuotaExceededError"
              + "|cimpl\\.KafkaException: KafkaError\\{code=THROTTLING_QUOTA_EXCEEDED|quotascope\\.clients\\.throttled_admin\\.\\w{1,40}\\.QuotaExceeded)\\b");
  /** As in {@code events/removal.py}: the driver gave these executors back. */
  private static final Pattern PLANNED =
      Pattern.compile(
          "(?s)(Executor killed by driver\\b|Executor decommission\\b|Finished decommissioning\\b|Container .{1,500} exited from explicit termination request\\b"
              + "|Container .{1,1000} Exit status: -10[57]\\b|Command exited with code 0\\z|\\s*The executor with id \\d+ exited with exit code 0\\b).*");
  private static final Pattern SPECIAL = Pattern.compile("\\\\u[0-9a-f]{4}|[^A-Za-z0-9]"); // the first as JSON writes them

  private final MetricRegistry registry;
  private final Notes notes = new Notes();
  private final Counter taskRetries;
  private final Counter stageRetries;
  private final Counter executorsLost;
  private final Counter kafkaQuotaFailures;

  JobMetrics(MetricRegistry registry) {
    this.registry = registry;
    taskRetries = registry.counter("taskRetries");
    stageRetries = registry.counter("stageRetries");
    executorsLost = registry.counter("executorsLost");
    kafkaQuotaFailures = registry.counter("kafkaQuotaFailures");
    registry.counter("taskFailures");
  }

  @Override
  public void onEvent(SparkListenerEvent event) {
    try {
      if (event instanceof SparkListenerTaskStart start) {
        boolean repeats = start.taskInfo().attemptNumber() > 0 && !start.taskInfo().speculative();
        taskRetries.inc(repeats ? 1 : 0);
      } else if (event instanceof SparkListenerTaskEnd end && end.reason() instanceof TaskFailedReason reason && isFailure(reason)) {
        registry.counter("taskFailures").inc();
        registry.counter("taskFailures." + reason.getClass().getSimpleName().replace("$", "")).inc();
        if (reason instanceof ExceptionFailure failure) {
          String text = failure.fullStackTrace() + "\n" + failure.description();
          kafkaQuotaFailures.inc(QUOTA.matcher(text).find() ? 1 : 0);
          notes.read(end, text);
        }
      } else if (event instanceof SparkListenerStageSubmitted stage) {
        stageRetries.inc(stage.stageInfo().attemptNumber() > 0 ? 1 : 0);
      } else if (event instanceof SparkListenerExecutorRemoved executor) {
        executorsLost.inc(PLANNED.matcher(executor.reason()).matches() ? 0 : 1);
      }
    } catch (Throwable error) {
      Trouble.with("an event of Spark's is not counted", error);
    }
  }

  private static boolean isFailure(TaskFailedReason reason) {
    return !(reason instanceof TaskCommitDenied) && !(reason instanceof TaskKilled killed && NOT_FAILED.matcher(killed.reason()).matches());
  }

  /**
   * Set the counters of throttle times to these totals and what failed attempts noted.
   *
   * Names lose special characters, as on Spark's page for Prometheus: clients whose names differ in these are one.
   */
  synchronized void throttles(Map<String, long[]> totals) {
    Map<String, long[]> all = new HashMap<>(totals);
    Totals.add(all, notes.ledger().totals(Clock.nowMs()));
    Map<String, Long> sums = new HashMap<>();
    all.forEach((key, counts) -> {
      String[] client = key.substring(2, key.length() - 2).split("\",\"", -1); // query, user, client id, side
      String name = "." + client[3] + "." + SPECIAL.matcher(client[2]).replaceAll("_");
      sums.merge("kafkaThrottledMs" + name, counts[0], Long::sum);
      sums.merge("kafkaThrottledResponses" + name, counts[1], Long::sum);
    });
    sums.forEach((name, sum) -> {
      Counter counter = registry.counter(name);
      counter.inc(Math.max(0, sum - counter.getCount()));
    });
  }
}
