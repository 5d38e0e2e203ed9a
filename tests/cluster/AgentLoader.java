import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.JarFile;

/**
 * Loads several Java agents into one JVM, each by a class loader of its own, because their bundled classes clash.
 * The argument is a file with one agent a line, written as for -javaagent: JAR=ARGUMENTS.
 * It also ends the JVM when standard input ends, so that no broker outlives the tests that started it.
 */
public final class AgentLoader {
    public static void premain(String file, Instrumentation instrumentation) throws Exception {
        endWithParent();
        loadAll(file, instrumentation);
    }

    /** Loads more of them into a JVM that runs. */
    public static void agentmain(String file, Instrumentation instrumentation) throws Exception {
        loadAll(file, instrumentation);
    }

    private static void loadAll(String file, Instrumentation instrumentation) throws Exception {
        for (String line : Files.readAllLines(Path.of(file))) {
            String[] jarAndArguments = line.split("=", 2);
            load(Path.of(jarAndArguments[0]), jarAndArguments[1], instrumentation);
        }
    }

    private static void endWithParent() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException closed) {
                // means the same as its end
            }
            Runtime.getRuntime().halt(1);
        }, "end-with-parent");
        watch.setDaemon(true);
        watch.start();
    }

    private static void load(Path jar, String arguments, Instrumentation instrumentation) throws Exception {
        URL[] classPath = {jar.toUri().toURL()};
        ClassLoader loader = new URLClassLoader(classPath, ClassLoader.getPlatformClassLoader());
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            loader.loadClass(premainClass(jar))
                .getMethod("premain", String.class, Instrumentation.class)
                .invoke(null, arguments, instrumentation);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static String premainClass(Path jar) throws Exception {
        try (JarFile file = new JarFile(jar.toFile())) {
            return file.getManifest().getMainAttributes().getValue("Premain-Class");
        }
    }
}
