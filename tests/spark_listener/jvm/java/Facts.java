package io.quotascope.spark;

import com.codahale.metrics.MetricRegistry;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.SparkConf;
import org.apache.spark.Success$;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.executor.ExecutorMetrics;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskLocality;
import scala.Option;
import scala.collection.immutable.List$;

/** Prints what parts of the plugin make of what they are given: for each line {@code PART TEXT…}, percent-encoded, an answer and a line with a point. */
final class Facts {
  private Facts() {}

  public static void main(String[] arguments) throws Exception {
    BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = questions.readLine()) != null; ) {
      String[] words = line.split(" ", -1);
      for (int word = 0; word < words.length; word++) {
        words[word] = URLDecoder.decode(words[word], StandardCharsets.UTF_8);
      }
      answer(words[0], Arrays.copyOfRange(words, 1, words.length));
      System.out.println(".");
    }
  }

  private static void answer(String part, String... texts) throws Exception {
    switch (part) {
      case "clients": print(Arrays.stream(texts).map(Labels::client).toArray(String[]::new)); break;
      case "users": print(Arrays.stream(texts).map(Labels::user).toArray(String[]::new)); break;
      case "overflow": overflow(Integer.parseInt(texts[0])); break;
      case "executors": executors(Integer.parseInt(texts[0])); break;
      case "hourly": hourly(Integer.parseInt(texts[0])); break;
      case "minutes": minutes(); break;
      case "since": since(); break;
      case "intervals": System.out.println(Arrays.toString(Arrays.stream(texts).mapToDouble(Interval::seconds).toArray())); break;
      case "metrics": metrics(texts); break;
      case "ended": ended(); break;
      case "spool": spool(texts[0]); break;
      case "trial": Trial.main(texts); break;
      case "queued": Queued.main(texts); break;
      case "queueing": Queued.operations(texts); break;
      default: throw new IllegalArgumentException(part);
    }
  }

  /** What tasks have left in a folder. */
  private static void spool(String folder) {
    Ledger ledger = new Ledger();
    new PythonSpool(new File(folder)).read(ledger);
    System.out.println(Json.pairs(ledger.totals(0)));
  }

  private static void print(String... texts) {
    System.out.println(Json.array(texts));
  }

  /** So many clients, each with a throttle time of 1 ms. */
  private static void overflow(int clients) {
    Ledger ledger = new Ledger();
    for (int client = 0; client < clients; client++) {
      ledger.account("", "", "client-" + client, "read").add(1, 1, 1, 0);
    }
    System.out.println(Json.pairs(ledger.totals(0)));
  }

  /** So many executors, one each minute, each with a last word of 1 ms that it says twice. */
  private static void executors(int executors) {
    Board board = new Board();
    Board.show("gone", board);
    for (int executor = 0; executor < executors; executor++) {
      Map<String, long[]> totals = Collections.singletonMap("[]", new long[] {1, 1, executor, 0});
      board.put("" + executor, totals, executor * 60_000L);
      board.put("" + executor, totals, executor * 60_000L + 1);
    }
    System.out.println(Json.pairs(Board.of("gone").totals()));
  }

  /** So many executors with 1 ms each, which they report twice, an hour apart. */
  private static void hourly(int executors) {
    Board board = new Board();
    for (int report = 0; report < 2 * executors; report++) {
      Map<String, long[]> totals = Collections.singletonMap("[]", new long[] {1, 1, 1, 0});
      board.put("" + report % executors, totals, report / executors * 3_600_000L + report);
    }
    System.out.println(Json.pairs(board.totals()));
  }

  /** An account with 5 ms and then, a minute later, 3 ms: at once, and after each of four minutes. */
  private static void minutes() {
    Account account = new Account();
    account.add(5, 1, 5, 1_000);
    StringBuilder recent = new StringBuilder("[").append(account.totals(1_000)[3]);
    account.add(3, 1, 3, 61_000);
    for (int minute = 1; minute <= 4; minute++) {
      recent.append(',').append(account.totals(1_000 + minute * 60_000L)[3]);
    }
    System.out.println(recent.append(']'));
  }

  /** What is new of a client that was there, of one that has nothing new, and of one that is new. */
  private static void since() {
    Map<String, long[]> before = new HashMap<>();
    before.put("\"old\"", new long[] {10, 2, 8, 0});
    before.put("\"idle\"", new long[] {10, 2, 8, 0});
    Map<String, long[]> now = new HashMap<>(before);
    now.put("\"old\"", new long[] {15, 3, 8, 5});
    now.put("\"new\"", new long[] {1, 1, 1, 1});
    System.out.println(Json.pairs(Totals.since(before, now)));
  }

  /** What is known of an application during which a client had a throttle time of 5 ms, and after which it had 7 ms. */
  private static void ended() {
    Class<?>[] types = {PluginContext.class};
    Object context = Proxy.newProxyInstance(Facts.class.getClassLoader(), types, (self, method, arguments) -> new SparkConf(false));
    DriverSide driver = new DriverSide();
    driver.init(null, (PluginContext) context);
    driver.registerMetrics("some", null);
    Account account = Reported.LEDGER.account("", "alice", "etl", "read");
    account.add(5, 1, 5, Clock.nowMs());
    driver.shutdown();
    account.add(7, 1, 7, Clock.nowMs());
    System.out.println(ThrottlePlugin.totals("some"));
  }

  /** The counters after attempts that failed with these texts, task 1 in stage 7 each, and after one that was canceled; JSON of names and counts. */
  private static void metrics(String... texts) {
    MetricRegistry registry = new MetricRegistry();
    JobMetrics metrics = new JobMetrics(registry);
    List<TaskEndReason> reasons = new ArrayList<>();
    reasons.add(Success$.MODULE$);
    reasons.add(new TaskKilled("Stage cancelled: Job 3 cancelled", List$.MODULE$.empty(), List$.MODULE$.empty(), List$.MODULE$.empty()));
    for (String text : texts) {
      reasons.add(new ExceptionFailure("E", text, new StackTraceElement[0], "", Option.empty(), List$.MODULE$.empty(), List$.MODULE$.empty(), List$.MODULE$.empty()));
    }
    for (TaskEndReason reason : reasons) {
      TaskInfo task = new TaskInfo(1L, 1, 2, 1, 1L, "driver", "localhost", TaskLocality.ANY(), false);
      metrics.onEvent(new SparkListenerTaskStart(7, 0, task));
      metrics.onEvent(new SparkListenerTaskEnd(7, 0, "ResultTask", reason, task, new ExecutorMetrics(), null));
    }
    metrics.onEvent(new SparkListenerExecutorRemoved(1L, "1", "Executor killed by driver."));
    metrics.onEvent(new SparkListenerExecutorRemoved(1L, "2", "worker lost"));
    Map<String, long[]> totals = new HashMap<>();
    totals.put(Json.array("q", "u", "caf\u00e9 \"x\"", "read"), new long[] {5, 1, 5, 5});
    totals.put(Json.array("", "u", "caf__\",\"", "read"), new long[] {7, 1, 7, 7});
    metrics.throttles(totals);
    metrics.throttles(totals);
    System.out.println(
        registry.getCounters().entrySet().stream()
            .map(entry -> Json.array(entry.getKey()).replace("]", "") + "," + entry.getValue().getCount() + "]")
            .collect(Collectors.joining(",", "[", "]")));
  }
}
