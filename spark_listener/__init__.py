"""
What Kafka's quotas cost a Spark job: how long it waits, on which client-id, and which retries that caused.

A job's driver collects Spark's own events and what the Kafka clients of its tasks were told, and shows them to Prometheus or over OTLP.
"""
