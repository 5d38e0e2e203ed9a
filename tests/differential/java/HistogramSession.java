import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.CompoundStat;
import org.apache.kafka.common.metrics.CompoundStat.NamedMeasurable;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Frequencies;
import org.apache.kafka.common.metrics.stats.Frequency;
import org.apache.kafka.common.metrics.stats.Histogram.BinScheme;
import org.apache.kafka.common.metrics.stats.Histogram.ConstantBinScheme;
import org.apache.kafka.common.metrics.stats.Histogram.LinearBinScheme;
import org.apache.kafka.common.metrics.stats.Percentile;
import org.apache.kafka.common.metrics.stats.Percentiles;
import org.apache.kafka.common.metrics.stats.Percentiles.BucketSizing;

/** Percentiles or frequencies, and beside them the bins of the same range. */
final class HistogramSession implements Replay.Session {
    private final CompoundStat stat;
    private final BinScheme bins;
    private final List<Measurable> measurables = new ArrayList<>();
    private MetricConfig config;
    private long nowMs;

    /** {@code <clock> <CONSTANT|LINEAR|FREQUENCIES> <bins> <min> <max> <config> (<percentile or centre>)...}. */
    HistogramSession(Line line) {
        nowMs = line.integer();
        String kind = line.word();
        int count = line.small();
        double min = line.number();
        double max = line.number();
        config = Stats.config(line);
        List<Double> of = new ArrayList<>();
        while (line.more()) {
            of.add(line.number());
        }
        stat = kind.equals("FREQUENCIES") ? frequencies(count, min, max, of)
            : percentiles(BucketSizing.valueOf(kind), 4 * count + 3, min, max, of);
        bins = kind.equals("LINEAR") ? new LinearBinScheme(count, max) : new ConstantBinScheme(count, min, max);
        measurables.add((Measurable) stat);
        for (NamedMeasurable part : stat.stats()) {
            measurables.add(part.stat());
        }
    }

    private static Percentiles percentiles(BucketSizing sizing, int bytes, double min, double max, List<Double> of) {
        Percentile[] parts = of.stream().map(each -> new Percentile(name(each), each)).toArray(Percentile[]::new);
        return new Percentiles(bytes, min, max, sizing, parts);
    }

    private static Frequencies frequencies(int buckets, double min, double max, List<Double> of) {
        Frequency[] parts = of.stream().map(each -> new Frequency(name(each), each)).toArray(Frequency[]::new);
        return new Frequencies(buckets, min, max, parts);
    }

    private static MetricName name(double part) {
        return new MetricName(Double.toString(part), "", "", java.util.Map.of());
    }

    @Override
    public String apply(String operation, Line line) {
        nowMs += line.integer();
        switch (operation) {
            case "record" -> stat.record(config, line.number(), nowMs);
            case "config" -> config = Stats.config(line);
            case "measure" -> {
                return Wire.list(measurables.stream().map(each -> Wire.bits(each.measure(config, nowMs))).toList());
            }
            case "bin" -> {
                return bin(line.number());
            }
            case "edge" -> {
                return Wire.bits(bins.fromBin(line.small()));
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return "ok";
    }

    private String bin(double value) {
        try {
            return Integer.toString(bins.toBin(value));
        } catch (IllegalArgumentException refused) {
            return "refused";
        }
    }
}
