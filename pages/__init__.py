"""Parts of pages and reports: elements, tables, charts, text for numbers and times, and files that are written as a whole."""
