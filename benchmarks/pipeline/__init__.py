"""What it costs to read request logs and to replay a history; see ``__main__``."""
