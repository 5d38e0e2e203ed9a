"""An hour of everything that goes wrong, at a hurried pace, and what the exporter's process makes of it."""
