import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/**
 * Kafka's clock under the control of the test: wall-clock and monotonic time move apart, because a wall clock may step back.
 *
 * <p>The reapers that Kafka's managers start by themselves see a time at which no channel is ever due: each turn of a reaper is an
 * operation of the test instead.
 */
final class ManualClock implements Time {
    private static final long BEFORE_EVERYTHING = -(1L << 62);
    private final Thread test = Thread.currentThread();
    private long wallMs;
    private long monotonicMs;

    ManualClock(long wallMs) {
        this.wallMs = wallMs;
    }

    void step(long ms) {
        wallMs += ms;
        monotonicMs += Math.max(ms, 0);
    }

    @Override
    public long milliseconds() {
        return wallMs;
    }

    @Override
    public long nanoseconds() {
        return Thread.currentThread() == test ? monotonicMs * 1_000_000 : BEFORE_EVERYTHING;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException("nothing sleeps");
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing waits");
    }
}
