"""
Export of the counts of a `ThrottleAccount`: the same numbers to Prometheus and to OpenTelemetry.

`prometheus.ThrottleCollector` is for prometheus-client, `opentelemetry.observe` for the API of OpenTelemetry (extra
`opentelemetry`); each library is imported only with its module.
"""
