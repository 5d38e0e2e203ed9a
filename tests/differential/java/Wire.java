import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HexFormat;
import java.util.stream.Collectors;

/** How values cross the pipe: doubles as their 64 bits in hex, texts as the hex of their UTF-8 after a dot, so both survive exactly. */
final class Wire {
    private static final HexFormat HEX = HexFormat.of();

    private Wire() {
    }

    /** The bits of a double; every NaN has the same. */
    static String bits(double value) {
        return Long.toHexString(Double.doubleToLongBits(value));
    }

    static double number(String bits) {
        return Double.longBitsToDouble(Long.parseUnsignedLong(bits, 16));
    }

    static String quote(String text) {
        return "." + HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    /** The text behind a dot and hex, null behind a minus. */
    static String text(String token) {
        return token.equals("-") ? null : new String(HEX.parseHex(token, 1, token.length()), StandardCharsets.UTF_8);
    }

    static boolean flag(String token) {
        return token.equals("1");
    }

    static String flag(boolean value) {
        return value ? "1" : "0";
    }

    static String list(Collection<String> parts) {
        return parts.stream().collect(Collectors.joining(",", "[", "]"));
    }
}
