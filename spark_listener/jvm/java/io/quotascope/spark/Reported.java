package io.quotascope.spark;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * The throttle times that the reporters of this JVM counted, as an MBean.
 *
 * Sessions may have class loaders of their own, and then this class is there more than once, each with an MBean: the plugin, of
 * whatever loader, finds them all.
 */
public final class Reported implements ReportedMBean {
  static final String ALL = "io.quotascope.spark:type=reported,*";
  static final Ledger LEDGER = new Ledger();

  static {
    String loader = Integer.toHexString(System.identityHashCode(Reported.class));
    try {
      ObjectName name = new ObjectName("io.quotascope.spark:type=reported,loader=" + loader);
      ManagementFactory.getPlatformMBeanServer().registerMBean(new Reported(), name);
    } catch (JMException | RuntimeException error) {
      Trouble.with("the throttle times of Kafka's clients cannot be shown", error);
    }
  }

  private Reported() {}

  @Override
  public HashMap<String, long[]> getTotals() {
    return LEDGER.totals(Clock.nowMs());
  }
}
