"""What people look at: the page at `/`."""

from .serving import Pages

__all__ = ["Pages"]
