package io.quotascope.spark;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Says where metrics are, and once what does not work. Messages of exceptions are left out: they may hold a client's configuration. */
final class Trouble {
  private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

  private Trouble() {}

  /** Say where to look, when all is well. */
  static void none(String sentence) {
    Logger.getLogger("io.quotascope.spark").info(sentence);
  }

  static void with(String what, Throwable error) {
    if (SAID.add(what)) {
      Logger.getLogger("io.quotascope.spark").log(Level.WARNING, "quotascope: {0}: {1}", new Object[] {what, error.getClass().getName()});
    }
  }
}
