"""From the configuration to what pushes. Nothing here needs the extra ``otlp`` until it is asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..config import Config, OtlpConfig
from ..errors import ConfigError
from .push import Push, SnapshotSender
from .settings import Target, interval_of, target_of
from .starts import Starts

_MISSING = "needs OpenTelemetry's packages: pip install 'quotascope[otlp]'"


def build_push(
    config: Config, environ: Mapping[str, str], starts: Starts | None = None
) -> Push | None:
    """
    What pushes, not started yet; None when that is not configured. Raises ``ConfigError``.

    ``starts`` is what an earlier push knows of counters that go on.
    """
    settings = config.otlp
    if settings is None:
        return None
    try:
        target = target_of(settings, environ)
        interval = interval_of(settings, environ)
    except OSError as error:
        raise ConfigError("otlp", [f"{error.filename}: {error.strerror}"]) from None
    except ValueError as error:
        raise ConfigError("otlp", [str(error)]) from None
    _require_packages()
    known = Starts(time.time_ns()) if starts is None else starts

    def open_sender(url: str) -> SnapshotSender:
        return _sender(url, config.cluster, settings, target, known)

    return Push(open_sender, target.place, interval, starts=known)


def _require_packages() -> None:
    try:
        from . import sender  # noqa: F401, PLC0415 - an extra: only who pushes has it
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {
            "opentelemetry",
            "google",
            "grpc",
            "requests",
        }:
            raise
        raise ConfigError("otlp", [_MISSING]) from None


def _sender(
    url: str,
    cluster: str | None,
    settings: OtlpConfig,
    target: Target,
    starts: Starts,
) -> SnapshotSender:
    from .encoding import Encoder, resource_of  # noqa: PLC0415
    from .sender import Sender  # noqa: PLC0415

    resource = resource_of(url, cluster, settings.resource_attributes)
    encoder = Encoder(resource, cluster, settings.max_request_bytes, starts)
    return Sender(target, encoder)
