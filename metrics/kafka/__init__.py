"""
Kafka's vocabulary of quotas; it imports the standard library only.

* quota types, entities and the precedence of rules: `entities`, `rules`, `node_quota_types`
* the controller's checks of quotas: `validation`; differences between releases: `release`
* request types and error codes: `protocol`; over which time Kafka measures: `windows`
* names: `principal`, `sanitizer`, `jmx` (MBeans), `host_address`, `system_users`
* Java's arithmetic: `numbers`
"""
