package io.quotascope.spark;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** A thread that reads the Kafka clients of this JVM and delivers the throttle times since it began. */
final class Sampler {
  private static final long ANYWAY_MS = 60_000;

  /** Takes absolute counts by client. */
  interface Delivery {
    void deliver(HashMap<String, long[]> totals) throws Exception;
  }

  private final Ledger estimates = new Ledger();
  private final ClientBeans beans = new ClientBeans(estimates);
  private final Ledger tasks = new Ledger();
  private final PythonSpool spool = new PythonSpool();
  private final Delivery delivery;
  private final Map<String, long[]> before;
  private final ScheduledExecutorService timer =
      Executors.newSingleThreadScheduledExecutor(
          work -> {
            Thread thread = new Thread(work, "quotascope-kafka-clients");
            thread.setDaemon(true);
            return thread;
          });
  private String delivered = "";
  private long deliveredMs;

  Sampler(Delivery delivery) {
    this.delivery = delivery;
    this.before = read();
  }

  /** Read, deliver and then run `afterwards`, at intervals of so many seconds. */
  void start(double seconds, Runnable afterwards) {
    long ms = (long) (seconds * 1_000);
    Runnable work =
        () -> {
          sample();
          afterwards.run();
        };
    timer.scheduleWithFixedDelay(work, ms, ms, TimeUnit.MILLISECONDS);
  }

  /** Stop after a last reading. */
  void stop() {
    timer.shutdownNow();
    sample();
  }

  /** Read and deliver now. Never raises, whatever happens: a job runs on, unwatched. */
  synchronized void sample() {
    try {
      HashMap<String, long[]> totals = Totals.since(before, read());
      String text = Json.pairs(totals);
      long nowMs = Clock.nowMs();
      if (!text.equals(delivered) || nowMs - deliveredMs >= ANYWAY_MS) {
        delivery.deliver(totals);
        delivered = text;
        deliveredMs = nowMs;
      }
    } catch (Throwable error) {
      Trouble.with("Kafka's clients cannot be read, or the driver does not get the report", error);
    }
  }

  private HashMap<String, long[]> read() {
    long nowMs = Clock.nowMs();
    HashMap<String, long[]> totals = new HashMap<>();
    try {
      beans.read(nowMs);
      spool.read(tasks);
      for (Map<String, long[]> reported : Arrays.asList(estimates.totals(nowMs), tasks.totals(nowMs), reported())) {
        Totals.add(totals, reported);
      }
    } catch (JMException error) {
      Trouble.with("Kafka's clients cannot be read", error);
    }
    return totals;
  }

  @SuppressWarnings("unchecked")
  private static Map<String, long[]> reported() throws JMException {
    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    Map<String, long[]> totals = new HashMap<>();
    for (ObjectName name : server.queryNames(new ObjectName(Reported.ALL), null)) {
      Totals.add(totals, (Map<String, long[]>) server.getAttribute(name, "Totals"));
    }
    return totals;
  }
}
