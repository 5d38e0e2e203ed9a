"""All sources at once, into one snapshot that simultaneous requests share."""

from .collection import Collection
from .sampling import Sampler

__all__ = ["Collection", "Sampler"]
