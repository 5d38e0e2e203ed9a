"""
Admin clients that create, extend and delete topics at the pace that quotas allow (KIP-599).

`kafka_python.ThrottleAwareAdmin` is a `kafka.KafkaAdminClient`, `confluent.ThrottleAwareAdmin` a
`confluent_kafka.admin.AdminClient`; each imports its library.
"""
