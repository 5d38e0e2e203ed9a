"""The pages for people, at `/` and `/runbooks/`, and the same entities as JSON."""

from .runbooks import Runbooks
from .serving import Pages

__all__ = ["Pages", "Runbooks"]
