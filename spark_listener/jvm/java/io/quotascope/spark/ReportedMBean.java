package io.quotascope.spark;

import java.util.HashMap;

/** What `Reported` shows. */
public interface ReportedMBean {
  HashMap<String, long[]> getTotals();
}
