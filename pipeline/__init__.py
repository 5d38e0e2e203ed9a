"""
From request logs to a quota that can be trusted: usage history, what-if, recommendation.

Kafka's brokers can write every request as a JSON line (`kafka.request.logger`, KIP-673). This room reads those lines,
keeps what quotas can see of them, and replays it through Kafka's own algorithms under rules that are not set yet.
Everything works without Spark; `pipeline.spark` does the same over data that does not fit one machine. Nothing here
changes a cluster.
"""
