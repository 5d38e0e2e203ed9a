"""Who sends: the resource and the instrumentation scope of all points."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ..exposition import own_version


def resource_of(
    url: str, cluster: str | None, attributes: Mapping[str, str]
) -> Resource:
    """
    The resource: quotascope, its version, and which instance of it this is.

    ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` go before these, and
    ``attributes`` before those.

    Args:
        url: Where this exporter answers; host name and port tell instances apart, and stay over restarts.
        cluster: The configured name of the Kafka cluster.
        attributes: What the configuration says.

    """
    ours = {
        "service.name": "quotascope",
        "service.version": own_version(),
        "service.instance.id": f"{socket.gethostname()}:{urlsplit(url).port}",
    }
    if cluster is not None:
        ours["kafka.cluster.alias"] = cluster
    told = OTELResourceDetector().detect()
    return Resource.create(ours).merge(told).merge(Resource(dict(attributes)))


def scope() -> InstrumentationScope:
    """The instrumentation scope."""
    return InstrumentationScope("quotascope", own_version())
