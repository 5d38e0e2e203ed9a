"""
The quota engine of Apache Kafka, in Python: Kafka's classes, with the same results in the last bit.

It is a library for your own programs, such as simulations and tests of clients. It imports the standard library only,
time is an argument, and each class is imported from its module:

>>> from quotascope.metrics.engine.quota_factory import QuotaManagers
>>> from quotascope.metrics.engine.registry import Registry
>>> from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
>>> from quotascope.metrics.kafka.principal import Principal
>>> now_ms = 1_795_000_000_000
>>> quotas = QuotaManagers(Registry(), now_ms)
>>> quotas.update_quota(QuotaType.PRODUCE, QuotaEntity(user="alice"), 100_000)
>>> alice = Principal("alice")
>>> quotas.produce.record_and_get_throttle_time(alice, "etl", 500_000, now_ms)
0
>>> quotas.produce.record_and_get_throttle_time(alice, "etl", 1_000_000, now_ms + 1_000)  # 150 kB/s: 5 s too fast
5000
>>> quotas.produce.decide(alice, "etl").level.name
'USER'

* statistics in a `sensor` of a `registry`: `rate`, `token_bucket`, `windowed`, `cumulative`
* client quotas: `quota_factory` has the managers of a node, `broker_quotas` full requests, `quota_callback` the
  interface of a callback
* `extras`: classes that neither the exporter nor the demo needs

Derive classes of your own from `Measurable`, `Stat`, `CompoundStat`, `SampledStat`, `Rate`, `BinScheme`,
`MetricsReporter`, `QuotaCallback` and `ThrottleCallback`. In the compiled engine (`native.compiled`), making an object
of a class that is derived from most others raises TypeError.
"""
