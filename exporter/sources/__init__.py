"""How brokers are read, one file for each way."""
