"""The command `quotascope`."""
