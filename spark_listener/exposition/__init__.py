"""Shows the books of a job to Prometheus and over OTLP."""
