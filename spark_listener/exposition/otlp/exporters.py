"""The SDK's exporters, which keep to themselves what must not be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import requests
from opentelemetry.sdk.metrics.export import MetricExporter

from ..settings import PushSettings

TIMEOUT_SECONDS = 10.0
"""For one push, further attempts included."""
Heard = Callable[[str], None]
"""Is told how a request failed."""


def exporter_of(settings: PushSettings, heard: Heard) -> MetricExporter:
    """The exporter for a receiver; what the settings leave open it reads from OpenTelemetry's environment variables."""
    if settings.protocol == "grpc":
        return _grpc(settings)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - one of two
        OTLPMetricExporter,
    )

    return OTLPMetricExporter(
        endpoint=settings.endpoint,
        headers=settings.headers,
        timeout=TIMEOUT_SECONDS,
        session=_Session(heard),
    )


def _grpc(settings: PushSettings) -> MetricExporter:
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415 - one of two
        OTLPMetricExporter,
    )

    headers = settings.headers
    return OTLPMetricExporter(
        endpoint=settings.endpoint,
        headers=None if headers is None else tuple(headers.items()),
        timeout=TIMEOUT_SECONDS,
    )


class _Session(requests.Session):
    """Tells how a request failed, without what a server or the library says: that can hold the whole URL."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard
        self.auth = _as_it_is  # or else a .netrc file would replace our headers

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401 - as requests declares it
        try:
            response = super().request(*args, **kwargs)
        except Exception as error:
            self._heard(type(error).__name__)
            raise
        if not response.ok:
            self._heard(f"HTTP {response.status_code}")
        return response


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
