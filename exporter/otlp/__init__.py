"""The same families as OpenTelemetry metrics, pushed over OTLP. Needs the extra ``otlp``, but only when it is used."""

from .build import build_push
from .push import Push

__all__ = ["Push", "build_push"]
