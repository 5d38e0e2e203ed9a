"""The alerts, one file for what they are about."""
