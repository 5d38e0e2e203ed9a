package org.apache.kafka.common.metrics;

public class MetricConfig {}
