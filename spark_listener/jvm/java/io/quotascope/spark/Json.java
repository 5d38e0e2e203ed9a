package io.quotascope.spark;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;

/** Writes JSON in ASCII. */
final class Json {
  private Json() {}

  static String array(String... texts) {
    return Arrays.stream(texts).map(Json::quoted).collect(Collectors.joining(",", "[", "]"));
  }

  /** An array of pairs: the client, which is JSON already, and its counts. */
  static String pairs(Map<String, long[]> totals) {
    return totals.entrySet().stream()
        .map(entry -> "[" + entry.getKey() + "," + Arrays.toString(entry.getValue()) + "]")
        .collect(Collectors.joining(",", "[", "]"));
  }

  private static String quoted(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
        json.append(c);
      } else {
        json.append(String.format("\\u%04x", (int) c));
      }
    }
    return json.append('"').toString();
  }
}
