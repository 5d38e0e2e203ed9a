"""Usage joined with limits: from what the sources read to one snapshot."""

from .join import Join

__all__ = ["Join"]
