"""Parts of pages and reports: elements, tables, charts, numbers and times as text, and atomic files."""
