"""The properties that say how a job is reported."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "spark.quotascope."
APP: Final = f"{PREFIX}app"
"""What the job is called: `spark.app.name` by default."""
HTTP_ENABLED: Final = f"{PREFIX}http.enabled"
"""Whether the driver serves a page to Prometheus: true unless it says false."""
HTTP_PORT: Final = f"{PREFIX}http.port"
"""Its port; 0, the default, for any free one."""
HTTP_BIND_ADDRESS: Final = f"{PREFIX}http.bindAddress"
"""Where it listens: by default where the driver's own ports do, `spark.driver.bindAddress` or else `spark.driver.host`."""
HTTP_HOST: Final = f"{PREFIX}http.host"
"""The host name of the driver in the entry for Prometheus: `spark.driver.host` by default."""
FILE_SD_PATH: Final = f"{PREFIX}fileSd.path"
"""The file of the entry for `file_sd_configs`; `{app_id}` is replaced."""
CLUSTER: Final = f"{PREFIX}cluster"
"""The Kafka cluster as the exporter's configuration calls it: a label of every series."""
OTLP_ENABLED: Final = f"{PREFIX}otlp.enabled"
"""Whether to push: true when there is an endpoint among the properties."""
OTLP_ENDPOINT: Final = f"{PREFIX}otlp.endpoint"
"""A URL; by default what OpenTelemetry's environment variables say."""
OTLP_PROTOCOL: Final = f"{PREFIX}otlp.protocol"
"""`http/protobuf` or `grpc`; by default what the environment says, or the first."""
OTLP_SECRET_HEADERS: Final = f"{PREFIX}otlp.secretHeaders"
"""`name=value,name=value`, values as in URLs; Spark redacts properties with `secret` in their names wherever it shows them."""
OTLP_INTERVAL_SECONDS: Final = f"{PREFIX}otlp.intervalSeconds"
"""From one push to the next; by default `OTEL_METRIC_EXPORT_INTERVAL`, or 60."""

KEYS: Final = frozenset(
    {
        APP,
        HTTP_ENABLED,
        HTTP_PORT,
        HTTP_BIND_ADDRESS,
        HTTP_HOST,
        FILE_SD_PATH,
        CLUSTER,
        OTLP_ENABLED,
        OTLP_ENDPOINT,
        OTLP_PROTOCOL,
        OTLP_SECRET_HEADERS,
        OTLP_INTERVAL_SECONDS,
    }
)
"""All of them."""
