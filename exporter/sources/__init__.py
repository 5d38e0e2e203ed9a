"""How brokers and controllers are read: Jolokia, and the dialects of Prometheus text."""
