package io.quotascope.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** The throttle times that failed attempts of Python tasks note on their exceptions ({@code task/note.py}). */
final class Notes {
  private static final Pattern NOTE = Pattern.compile("(?m)^[ |+]{0,40}quotascope throttles: (\\{.{0,8000})");
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Ledger ledger = new Ledger();

  /** Count the fullest note of the attempt that has ended, if there is one. Texts of exceptions are untrusted: it must name this attempt. */
  void read(SparkListenerTaskEnd end, String text) {
    JsonNode fullest = null;
    for (Matcher found = NOTE.matcher(text); found.find(); ) {
      JsonNode note = note(found.group(1));
      boolean ours =
          note.path("stage").asLong(-1) == end.stageId()
              && note.path("number").asLong(-1) == end.taskInfo().attemptNumber()
              && note.path("task").asLong(-1) == end.taskInfo().taskId();
      if (ours && (fullest == null || responses(note) >= responses(fullest))) { // of equal ones the last, which is the newest
        fullest = note;
      }
    }
    if (fullest != null) {
      String query = fullest.path("query").asText();
      fullest.path("clients").forEach(row -> count(query, row));
    }
  }

  Ledger ledger() {
    return ledger;
  }

  private static JsonNode note(String text) {
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException error) { // a text that only looks like one
      return JSON.nullNode();
    }
  }

  /** Of the whole attempt: those that the plugin has already make a note no less full. */
  private static long responses(JsonNode note) {
    long sum = 0;
    for (String part : new String[] {"clients", "reported"}) {
      for (JsonNode row : note.path(part)) {
        sum += row.path(4).asLong();
      }
    }
    return sum;
  }

  /** User, client id, side, ms, responses and longest ms. */
  private void count(String query, JsonNode row) {
    ledger.add(query, row.path(0).asText(), row.path(1).asText(), row.path(2).asText(), row.path(3).asLong(), row.path(4).asLong(), row.path(5).asLong());
  }
}
