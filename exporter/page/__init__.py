"""What people look at: the page at `/`, and the same entities as JSON."""

from .serving import Pages

__all__ = ["Pages"]
