"""Sources of a driver's events: a queue in its JVM, callbacks, or a streaming listener."""
