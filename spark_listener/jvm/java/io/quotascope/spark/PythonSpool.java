package io.quotascope.spark;

import java.io.File;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import org.apache.spark.SparkEnv;

/**
 * The folder where Python tasks leave the throttle times of their clients while they run ({@code task/worker.py}).
 *
 * It is in the first of the executor's local directories, whose paths Spark gives its Python workers as SPARK_LOCAL_DIRS, and which it deletes at the end.
 */
final class PythonSpool {
  private static final int MOST_BYTES = 1_000_000;
  private static final int MOST_FILES = 10_000;

  private final File folder;

  PythonSpool() {
    this(localFolder());
  }

  PythonSpool(File folder) {
    this.folder = folder;
  }

  private static File localFolder() {
    File found = new File("");
    try {
      found = new File(SparkEnv.get().blockManager().diskBlockManager().localDirs()[0], "quotascope");
      Files.createDirectories(found.toPath());
    } catch (Throwable error) {
      Trouble.with("Python tasks without an accumulator do not report their throttle times", error);
    }
    return found;
  }

  /** Count what tasks have left since the last call. Tasks run any code: what is no file of a moderate size is only deleted, never opened. */
  void read(Ledger ledger) {
    File[] files = folder.listFiles((in, name) -> name.endsWith(".txt"));
    for (int index = 0; files != null && index < Math.min(files.length, MOST_FILES); index++) {
      try {
        boolean readable = Files.isRegularFile(files[index].toPath(), LinkOption.NOFOLLOW_LINKS) && files[index].length() <= MOST_BYTES;
        String text = readable ? Files.readString(files[index].toPath(), StandardCharsets.ISO_8859_1) : "";
        if (files[index].delete()) { // or it would be counted again
          text.lines().forEach(line -> count(ledger, line.split(" ", -1)));
        }
      } catch (IOException | RuntimeException error) {
        Trouble.with("a Python task is not understood", error);
      }
    }
  }

  /** Query, user, client id, side, ms, responses and longest ms. */
  private static void count(Ledger ledger, String[] words) {
    String[] names = new String[4];
    for (int index = 0; index < names.length; index++) {
      names[index] = URLDecoder.decode(words[index], StandardCharsets.UTF_8);
    }
    ledger.add(names[0], names[1], names[2], names[3], Long.parseLong(words[4]), Long.parseLong(words[5]), Long.parseLong(words[6]));
  }
}
