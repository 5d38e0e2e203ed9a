"""
The rest of Kafka's classes, for your programs; in quotascope only tests import them, to compare them with Kafka's own.

* statistics: `all_time`, `meter`, `percentiles`, `frequencies`, `histogram`
* quotas: `connection_quotas` (KIP-612) with `connection_counts` and `delayed_close`, `replication_quotas`,
  `tiered_storage` (KIP-956)
* names and reports: `jmx_reporter`, `telemetry_names` (KIP-714)
* `batch` records arrays of values, and needs NumPy
* `burst_spreading` is a policy that Kafka does not have: a draft of KIP-599 had it
"""
