package io.quotascope.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The accounts of the clients of a JVM, in bounded space. */
final class Ledger {
  private static final Set<String> SIDES = Set.of("read", "write", "admin");
  private static final int MOST = 1_000;
  private static final String OVERFLOW = "__overflow__";

  private final Map<String, Account> accounts = new HashMap<>();

  /** Clients with the same labels are counted as one, and those that come too late by their side only. */
  synchronized Account account(String query, String user, String clientId, String side) {
    String key = Json.array(query, user, clientId, side);
    if (!accounts.containsKey(key) && accounts.size() >= MOST) {
      key = Json.array("", OVERFLOW, OVERFLOW, side);
    }
    return accounts.computeIfAbsent(key, any -> new Account());
  }

  /** Count what a Python task reports, whose names are untrusted. Throws where it is no report. */
  void add(String query, String user, String clientId, String side, long ms, long responses, long longestMs) {
    if (!SIDES.contains(side) || Math.min(ms, Math.min(responses, longestMs)) < 0) {
      throw new IllegalArgumentException("no report of throttle times");
    }
    account(Labels.capped(query), Labels.capped(user), Labels.capped(clientId), side).add(ms, responses, longestMs, Clock.nowMs());
  }

  /** By the JSON array of query, user, client id and side. Types of the JDK only: other class loaders read them, too. */
  synchronized HashMap<String, long[]> totals(long nowMs) {
    HashMap<String, long[]> totals = new HashMap<>();
    accounts.forEach((key, account) -> totals.put(key, account.totals(nowMs)));
    return totals;
  }
}
