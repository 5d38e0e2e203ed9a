"""Where a driver gets its events from: a queue in its JVM, callbacks, or a streaming listener."""
