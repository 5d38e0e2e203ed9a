"""The books of one application: failures and retries by cause, streaming queries, and who waited for Kafka."""
