"""The JSON API: what the exporter answers under `/api/v1/`, and how the command line reads it back."""

from .handlers import Api

__all__ = ["Api"]
