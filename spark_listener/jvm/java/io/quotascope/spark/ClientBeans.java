package io.quotascope.spark;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.Map;
import java.util.Set;
import javax.management.AttributeNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** Estimates from the MBeans of the Kafka clients of this JVM, but for those that a `ThrottleReporter` counts. */
final class ClientBeans {
  private static final String RESPONSES = "response-total";
  private static final int READINGS = 4;

  private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
  private final Map<ObjectName, Seen> clients = new HashMap<>();
  private final Ledger ledger;

  ClientBeans(Ledger ledger) {
    this.ledger = ledger;
  }

  /** A client that is there, and what is known of it. */
  private static final class Seen {
    final WindowedSum sum = new WindowedSum();
    final Account account;
    double countedMs;

    Seen(Account account) {
      this.account = account;
    }
  }

  /** Count what the clients report now. Of a client that is gone, everything that was seen is already counted. */
  void read(long nowMs) throws JMException {
    Set<ObjectName> producers = names("kafka.producer:type=producer-metrics,client-id=*");
    Set<ObjectName> consumers = names("kafka.consumer:type=consumer-fetch-manager-metrics,client-id=*");
    clients.keySet().removeIf(name -> !producers.contains(name) && !consumers.contains(name));
    for (ObjectName name : producers) {
      read(nowMs, name, name, "write", "produce-throttle-time");
    }
    for (ObjectName name : consumers) {
      read(nowMs, name, sibling(name, "consumer-metrics"), "read", "fetch-throttle-time");
    }
  }

  private void read(long nowMs, ObjectName name, ObjectName network, String side, String sensor) throws JMException {
    for (int reading = 0; reading < READINGS; reading++) {
      Map<String, Double> before = values(network, RESPONSES);
      Map<String, Double> client = values(name, sensor + "-avg", sensor + "-max", ThrottleReporter.MARK);
      boolean quiet = before.equals(values(network, RESPONSES));
      if (client.containsKey(ThrottleReporter.MARK) || before.isEmpty() || !client.containsKey(sensor + "-avg")) {
        return;
      }
      if (quiet || reading == READINGS - 1) {
        Seen seen = clients.computeIfAbsent(name, any -> new Seen(account(name, side)));
        count(seen, nowMs, before.get(RESPONSES).longValue(), client.get(sensor + "-avg"), client.getOrDefault(sensor + "-max", 0.0));
        return;
      }
    }
  }

  /** Add what is new. A client does not report how many responses had a throttle time: it is as few as the longest throttle time allows. */
  private static void count(Seen seen, long nowMs, long responses, double average, double longest) {
    double sum = seen.sum.observe(nowMs, responses, average, longest);
    double more = sum - seen.countedMs;
    if (more > 0 && longest > 0) {
      seen.account.add((long) more, (long) Math.ceil(more / longest), (long) longest, nowMs);
      seen.countedMs = sum;
    }
  }

  private Account account(ObjectName name, String side) {
    String id = name.getKeyProperty("client-id");
    return ledger.account("", "", Labels.client(id.startsWith("\"") ? ObjectName.unquote(id) : id), side);
  }

  private Set<ObjectName> names(String pattern) throws JMException {
    return server.queryNames(new ObjectName(pattern), null);
  }

  private static ObjectName sibling(ObjectName name, String type) throws JMException {
    Hashtable<String, String> properties = new Hashtable<>(name.getKeyPropertyList());
    properties.put("type", type);
    return new ObjectName(name.getDomain(), properties);
  }

  /**
   * The numbers among these attributes, as far as the client is still there.
   *
   * One by one: for each that is not there, JmxReporter's getAttributes logs a warning with a stack trace. A client that is closed loses them one after another.
   */
  private Map<String, Double> values(ObjectName name, String... attributes) {
    Map<String, Double> values = new HashMap<>();
    for (String attribute : attributes) {
      try {
        if (server.getAttribute(name, attribute) instanceof Number number) {
          values.put(attribute, number.doubleValue());
        }
      } catch (AttributeNotFoundException missing) {
        continue;
      } catch (JMException gone) {
        return values;
      }
    }
    return values;
  }
}
