"""What every page and report is made of: elements, tables, and words for numbers and times, and whole files."""
