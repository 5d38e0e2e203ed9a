"""The same families as OpenTelemetry metrics, pushed over OTLP. Needs the extra ``otlp``, but only when it is used."""

from .push import OtlpPush
from .settings import build_push

__all__ = ["OtlpPush", "build_push"]
