"""The sources of brokers and controllers: Jolokia, and the dialects of Prometheus text."""
