"""
The JSON API.

What the exporter answers under `/api/v1/` (`handlers`), and how the command line reads it back (`client`).
"""
