/** One line of the protocol, read token by token. */
final class Line {
    private final String[] tokens;
    private int next = 0;

    Line(String line) {
        tokens = line.split(" ");
    }

    boolean more() {
        return next < tokens.length;
    }

    String word() {
        return tokens[next++];
    }

    String text() {
        return Wire.text(word());
    }

    double number() {
        return Wire.number(word());
    }

    long integer() {
        return Long.parseLong(word());
    }

    int small() {
        return Math.toIntExact(integer());
    }

    boolean flag() {
        return Wire.flag(word());
    }
}
