package io.quotascope.spark;

import java.util.Random;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.Max;

/**
 * Feeds Kafka's own average with throttle times, reads it once a second, and prints for each trial the true sum, what `WindowedSum`
 * makes of the readings, and what adding up averages times new responses would: {@code trial TRIALS SECONDS} of {@link Facts}.
 */
final class Trial {
  private final Random random;
  private final Avg average = new Avg();
  private final Max longest = new Max();
  private final MetricConfig config = new MetricConfig();
  private final WindowedSum sum = new WindowedSum();
  private long nowMs = 1_700_000_000_000L;
  private long responses;
  private long truth;
  private long nextReadMs;
  private long read;
  private double naive;
  private double estimate;

  private Trial(long seed) {
    random = new Random(seed);
    config.timeWindow(30, java.util.concurrent.TimeUnit.SECONDS).samples(2);
  }

  public static void main(String[] arguments) {
    for (int seed = 0; seed < Integer.parseInt(arguments[0]); seed++) {
      Trial trial = new Trial(seed);
      trial.run(Integer.parseInt(arguments[1]));
      System.out.println(trial.truth + " " + Math.round(trial.estimate) + " " + Math.round(trial.naive));
    }
  }

  private void run(int seconds) {
    long end = nowMs + seconds * 1_000L;
    nextReadMs = nowMs + 1_000;
    while (nowMs < end) {
      phase(Math.min(end, nowMs + 1_000 * (1 + random.nextInt(120))), random.nextInt(3));
    }
    read(false);
  }

  /** A client that is idle, or busy, or throttled: it waits for its throttle time before it asks again. */
  private void phase(long end, int kind) {
    int pause = 5 + random.nextInt(300);
    int longest = 20 + random.nextInt(3_000);
    while (nowMs < end) {
      long throttleMs = kind == 2 && random.nextInt(5) > 0 ? random.nextInt(longest) : 0;
      if (kind != 0) {
        answer(throttleMs);
      }
      pass(throttleMs + random.nextInt(2 * pause));
    }
  }

  private void pass(long ms) {
    long until = nowMs + ms;
    while (nextReadMs <= until) {
      nowMs = nextReadMs;
      read(random.nextInt(50) == 0);
      nextReadMs += 1_000 + random.nextInt(20);
    }
    nowMs = until;
  }

  private void answer(long throttleMs) {
    average.record(config, throttleMs, nowMs);
    longest.record(config, throttleMs, nowMs);
    responses++;
    truth += throttleMs;
  }

  /** A response may have come in while the numbers were read. */
  private void read(boolean late) {
    long before = responses + (late ? 1 : 0);
    double value = average.measure(config, nowMs);
    naive += Double.isNaN(value) ? 0 : value * (before - read);
    read = before;
    estimate = sum.observe(nowMs, before, value, longest.measure(config, nowMs));
    if (late) {
      answer(0);
    }
  }

}
