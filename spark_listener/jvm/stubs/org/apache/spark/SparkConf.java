package org.apache.spark;

public class SparkConf {
  public native String get(String key, String otherwise);
}
