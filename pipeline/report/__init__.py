"""What a replay or a recommendation says, as a page, as CSV and as JSON."""
