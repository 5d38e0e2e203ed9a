"""From the configuration to what pushes. Nothing here needs the extra ``otlp`` until it is asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..config import Config
from ..errors import ConfigError
from .push import Push
from .settings import interval_of, target_of
from .starts import Starts

_PACKAGES = {"opentelemetry", "google", "grpc", "requests"}
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
    try:
        from .encoding import Encoder, resource_of  # noqa: PLC0415 - an extra
        from .sender import Sender  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise ConfigError("otlp", [_MISSING]) from None
    known = Starts(time.time_ns()) if starts is None else starts

    def open_sender(url: str) -> Sender:
        resource = resource_of(url, config.cluster, settings.resource_attributes)
        most = settings.max_request_bytes
        return Sender(target, Encoder(resource, config.cluster, most, known))

    return Push(open_sender, target.place, interval, starts=known)
