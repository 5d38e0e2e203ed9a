import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Kafka's side of benchmarks/engine.py: reads {@code <scenario> TAB <records>} and answers with ns per record, or
 * {@code memory, <what> TAB <entities>} and answers with bytes per entity. The scenarios are those of benchmarks/scenarios.py.
 */
final class EngineBench {
    private static final long T0 = 1_700_000_000_000L;
    private static final int PER_MS = 100;
    private static final int ENTITIES = 2_000;
    private static final int BATCH = 10_000;
    private static final double NEVER = 1e12;
    private static final double ALWAYS = 0.7;
    private final Metrics metrics = new Metrics();
    private final Map<String, IntConsumer> scenarios = new HashMap<>();
    private int made = 0;

    private EngineBench() {
    }

    public static void main(String[] arguments) throws Exception {
        EngineBench bench = new EngineBench();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            int count = Integer.parseInt(words[1]);
            System.out.println(words[0].startsWith("memory") ? memory(words[0], count) : bench.time(words[0], count));
        }
        System.exit(0); // the managers' reapers are threads
    }

    private double time(String name, int records) {
        IntConsumer scenario = scenarios.computeIfAbsent(name, this::scenario);
        long start = System.nanoTime();
        scenario.accept(records);
        return (System.nanoTime() - start) / (double) records;
    }

    private IntConsumer scenario(String name) {
        return switch (name) {
            case "rate" -> record(sensor(false, NEVER), false);
            case "rate, checked" -> record(sensor(false, NEVER), true);
            case "rate, checked, fractions" -> record(sensor(false, NEVER), true, 0.1);
            case "rate + bucket" -> record(sensor(true, NEVER), false);
            case "rate + bucket, checked" -> record(sensor(true, NEVER), true);
            case "rate, violated" -> violate(sensor(false, ALWAYS));
            case "two threads, one sensor" -> threads(List.of(sensor(true, NEVER)));
            case "two threads, two sensors" -> threads(List.of(sensor(true, NEVER), sensor(true, NEVER)));
            case "2,000 entities" -> entities(false);
            case "2,000 entities, checked" -> entities(true);
            case "quota manager" -> manager(NEVER);
            case "quota manager, throttled" -> manager(ALWAYS);
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static MetricConfig config(double bound) {
        return new MetricConfig().samples(11).timeWindow(1, TimeUnit.SECONDS).quota(Quota.upperBound(bound));
    }

    private Sensor sensor(boolean bucket, double bound) {
        return sensor(metrics, "s" + made++, bucket, bound);
    }

    /** A sensor with something in each of its windows. */
    private static Sensor sensor(Metrics metrics, String name, boolean bucket, double bound) {
        Sensor sensor = metrics.sensor(name, config(bound));
        sensor.add(metrics.metricName("rate-" + name, "g"), new Rate(), config(bound));
        if (bucket) {
            sensor.add(metrics.metricName("tokens-" + name, "g"), new TokenBucket(), config(bound));
        }
        for (long now = T0 - 13_000; now < T0; now += 1_000) {
            sensor.record(1.0, now, false);
        }
        return sensor;
    }

    private static IntConsumer record(Sensor sensor, boolean check) {
        return record(sensor, check, 1.0);
    }

    private static IntConsumer record(Sensor sensor, boolean check, double value) {
        long[] done = {0};
        return records -> {
            long from = done[0];
            for (long i = from; i < from + records; i++) {
                sensor.record(value, T0 + i / PER_MS, check);
            }
            done[0] = from + records;
        };
    }

    private static IntConsumer violate(Sensor sensor) {
        long[] done = {0};
        return records -> {
            long from = done[0];
            long violations = 0;
            for (long i = from; i < from + records; i++) {
                try {
                    sensor.record(1.0, T0 + i / PER_MS, true);
                } catch (QuotaViolationException violation) {
                    violations++;
                }
            }
            done[0] = from + records;
            expect(violations == records, "not every record was a violation");
        };
    }

    private static void expect(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalStateException(otherwise);
        }
    }

    /** Two threads, the time per record of both together. */
    private static IntConsumer threads(List<Sensor> sensors) {
        List<IntConsumer> works =
            List.of(record(sensors.get(0), true), record(sensors.get(sensors.size() - 1), true));
        return records -> {
            CountDownLatch go = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            for (IntConsumer work : works) {
                threads.add(new Thread(() -> {
                    await(go);
                    work.accept(records / 2);
                }));
            }
            threads.forEach(Thread::start);
            go.countDown();
            threads.forEach(EngineBench::join);
        };
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** Batches over all entities, 100 ms of model time apart. */
    private IntConsumer entities(boolean check) {
        Sensor[] sensors = new Sensor[ENTITIES];
        for (int i = 0; i < ENTITIES; i++) {
            sensors[i] = sensor(true, NEVER);
        }
        int[] chosen = new Random(1).ints(BATCH, 0, ENTITIES).toArray();
        long[] now = {T0};
        return records -> {
            for (int done = 0; done < records; done += BATCH) {
                now[0] += 100;
                for (int entity : chosen) {
                    sensors[entity].record(1.0, now[0], check);
                }
            }
        };
    }

    private static ClientQuotaManager limited(Metrics metrics, double bound) {
        ClientQuotaManager manager =
            new ClientQuotaManager(new ClientQuotaManagerConfig(11, 1), metrics, QuotaType.PRODUCE, Time.SYSTEM, "");
        manager.updateQuota(
            Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.empty(), Optional.of(Quota.upperBound(bound)));
        return manager;
    }

    private static Session session(String user) {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), InetAddress.getLoopbackAddress());
    }

    private static void fill(ClientQuotaManager manager, Session session) {
        for (long now = T0 - 13_000; now < T0; now += 1_000) {
            manager.recordAndGetThrottleTimeMs(session, "app", 1.0, now);
        }
    }

    private static IntConsumer manager(double bound) {
        ClientQuotaManager manager = limited(new Metrics(), bound);
        Session session = session("alice");
        fill(manager, session);
        long[] done = {0};
        return records -> {
            long from = done[0];
            long throttled = 0;
            for (long i = from; i < from + records; i++) {
                throttled += manager.recordAndGetThrottleTimeMs(session, "app", 1.0, T0 + i / PER_MS) == 0 ? 0 : 1;
            }
            done[0] = from + records;
            expect(throttled == (bound == ALWAYS ? records : 0), "throttled " + throttled + " of " + records);
        };
    }

    private static double memory(String what, int entities) {
        Metrics metrics = new Metrics();
        ClientQuotaManager manager = limited(metrics, NEVER);
        long before = used();
        for (int i = 0; i < entities; i++) {
            if (what.endsWith("manager")) {
                fill(manager, session("user-" + i));
            } else {
                sensor(metrics, "s" + i, true, NEVER);
            }
        }
        double each = (used() - before) / (double) entities;
        expect(metrics.metrics().size() >= entities && manager.quotasEnabled(), "collected too early");
        return each;
    }

    private static long used() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
