"""All sources at once, into one snapshot that everybody who asks at the same time shares."""

from .collection import Collection

__all__ = ["Collection"]
