"""
Kafka's request log as a table.

The logger `kafka.request.logger` writes each answered request as one JSON line (KIP-673, since 2.8).

Nothing here needs Spark: lines come in as bytes and leave as Arrow tables.
"""
