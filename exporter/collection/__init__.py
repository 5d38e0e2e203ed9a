"""All sources at once, into one snapshot that everybody who asks at the same time shares."""

from .collection import Collection
from .sampler import Sampler

__all__ = ["Collection", "Sampler"]
