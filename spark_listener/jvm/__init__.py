"""What the Kafka clients in the JVMs of a job were told: an executor plugin, and who reads it."""
