"""The serving side: who may ask, over what, how much, and what every answer carries."""

from .front import Front

__all__ = ["Front"]
