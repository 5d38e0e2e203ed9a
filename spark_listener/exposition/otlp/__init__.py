"""The same families pushed over OTLP. Needs the extra `otlp`."""

from .push import Push

__all__ = ["Push"]
