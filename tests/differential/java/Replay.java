import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Replays operations on Kafka's own classes: a line in, a line out.
 *
 * <p>{@code new <kind> ...} starts afresh; every other line is an operation of that kind. An empty line ends a batch: only then are
 * the answers written, followed by an empty line, so that a pipe can never fill up on both sides.
 */
public final class Replay {
    /** Answers one operation at a time. */
    interface Session {
        String apply(String operation, Line line) throws Exception;

        default void close() throws Exception {
        }
    }

    private static final Map<String, String> SESSIONS = Map.ofEntries(
        Map.entry("stat", "StatSession"),
        Map.entry("registry", "RegistrySession"),
        Map.entry("managers", "ManagerSession"),
        Map.entry("names", "NamesSession"),
        Map.entry("channel", "ChannelSession"),
        Map.entry("client", "ClientSession"),
        Map.entry("facts", "FactsSession"),
        Map.entry("histogram", "HistogramSession"),
        Map.entry("byterates", "ByteRateSession"),
        Map.entry("connections", "ConnectionSession"),
        Map.entry("validation", "ValidationSession"),
        Map.entry("callbacks", "CallbackSession"));

    private Session session = (operation, line) -> {
        throw new IllegalStateException("no session");
    };

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Replay replay = new Replay();
        while (replay.batch(in, out)) {
            out.flush();
        }
        System.exit(0); // reapers of abandoned managers may still wait for their next turn
    }

    private boolean batch(BufferedReader in, PrintStream out) throws IOException {
        StringBuilder answers = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.print(answers.append('\n'));
                return true;
            }
            answers.append(answer(new Line(line))).append('\n');
        }
        return false;
    }

    private String answer(Line line) {
        try {
            String operation = line.word();
            if (!operation.equals("new")) {
                return session.apply(operation, line);
            }
            session.close();
            session = create(line.word(), line);
            return "ok";
        } catch (Exception | LinkageError | AssertionError failure) {
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace));
            return "failed " + Wire.quote(trace.toString());
        }
    }

    /** A session of a kind: a release may lack some, whose classes are not compiled for it. */
    private static Session create(String kind, Line line) throws Exception {
        String name = SESSIONS.get(kind);
        if (name == null) {
            throw new IllegalArgumentException(kind);
        }
        Constructor<?> constructor = Class.forName(name).getDeclaredConstructors()[0];
        try {
            return (Session) (constructor.getParameterCount() == 0 ? constructor.newInstance() : constructor.newInstance(line));
        } catch (InvocationTargetException failed) {
            throw failed.getCause() instanceof Exception cause ? cause : failed;
        }
    }
}
