"""From tables on disk to an answer: what the command line and Spark applications call."""
