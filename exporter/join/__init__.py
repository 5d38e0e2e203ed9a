"""Usage joined with limits: from what the sources read to one snapshot."""
