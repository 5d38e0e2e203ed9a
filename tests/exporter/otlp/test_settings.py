from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quotascope.exporter.config import Config, OtlpConfig, OtlpProtocol
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.otlp import OtlpPush, build_push
from quotascope.exporter.otlp.push import OtlpReceiver
from quotascope.exporter.otlp.settings import interval_of, receiver_of

HTTP, GRPC = OtlpProtocol.HTTP, OtlpProtocol.GRPC
OTLP = "OTEL_EXPORTER_OTLP_"


def resolved(environ: dict[str, str] | None = None, **config: Any) -> OtlpReceiver:
    """Return the receiver of a configuration, with these variables and no others."""
    return receiver_of(OtlpConfig.model_validate(config), environ or {})


def test_nothing_said() -> None:
    """A receiver on this machine, over HTTP, compressed; times of the environment are milliseconds."""
    usual = OtlpReceiver(protocol=HTTP, endpoint="http://localhost:4318/v1/metrics", gzip=True, timeout_seconds=10)
    assert (resolved(), interval_of(OtlpConfig(), {})) == (usual, 60)
    environ = {f"{OTLP}TIMEOUT": "2500", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}
    assert (resolved(environ), interval_of(OtlpConfig(), environ)) == (replace(usual, timeout_seconds=2.5), 5)


@pytest.mark.parametrize(
    ("config", "environ", "endpoint"),
    [
        ({"endpoint": "http://c:4318"}, {}, "http://c:4318/v1/metrics"),
        ({"endpoint": "http://c:4318/"}, {}, "http://c:4318/v1/metrics"),
        ({"endpoint": "https://c/api/v1/otlp/v1/metrics"}, {}, "https://c/api/v1/otlp/v1/metrics"),
        ({"endpoint": "https://c?key=k"}, {}, "https://c/v1/metrics?key=k"),
        ({"endpoint": "https://c:4317/x", "protocol": GRPC}, {}, "https://c:4317"),
        ({}, {"ENDPOINT": "http://c:4318/base/"}, "http://c:4318/base/v1/metrics"),
        ({}, {"METRICS_ENDPOINT": "http://c:4318/x"}, "http://c:4318/x"),
        ({}, {"ENDPOINT": "http://a", "METRICS_ENDPOINT": "http://b/m"}, "http://b/m"),
        ({}, {"ENDPOINT": "c:4317", "PROTOCOL": "grpc"}, "https://c:4317"),
        ({}, {"ENDPOINT": "c:4317", "PROTOCOL": "grpc", "INSECURE": "true"}, "http://c:4317"),
    ],
)
def test_endpoints(config: dict[str, Any], environ: dict[str, str], endpoint: str) -> None:
    """Over HTTP a URL without a path gets the usual one; OpenTelemetry's variables mean what its specification says."""
    assert resolved({OTLP + name: value for name, value in environ.items()}, **config).endpoint == endpoint


def test_the_configuration_goes_before_the_environment() -> None:
    """A setting here is not overruled by variables that an operator put into every container."""
    environ = {
        f"{OTLP}ENDPOINT": "http://elsewhere",
        f"{OTLP}PROTOCOL": "grpc",
        f"{OTLP}HEADERS": "a=1,b=2",
        f"{OTLP}TIMEOUT": "3000",
        f"{OTLP}COMPRESSION": "gzip",
        "OTEL_METRIC_EXPORT_INTERVAL": "5000",
    }
    target = resolved(
        environ,
        endpoint="http://here:1",
        protocol="http/protobuf",
        headers={"b": "3"},
        timeout_seconds=7,
        compression="none",
    )
    assert target == OtlpReceiver(
        protocol=HTTP, endpoint="http://here:1/v1/metrics", headers={"a": "1", "b": "3"}, gzip=False, timeout_seconds=7
    )
    assert interval_of(OtlpConfig(interval_seconds=9), environ) == 9


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("PROTOCOL", "http/json"),
        ("COMPRESSION", "zstd"),
        ("TIMEOUT", "soon"),
        ("TIMEOUT", "0"),
        ("HEADERS", "token"),
        ("ENDPOINT", "ftp://c"),
        ("ENDPOINT", "http://user:geheim@c"),
    ],
)
def test_senseless_variables_are_named(option: str, value: str) -> None:
    """A senseless variable is named in the message, without a secret."""
    with pytest.raises(ValueError, match=OTLP + option) as caught:
        resolved({OTLP + option: value})
    assert "geheim" not in str(caught.value)


def test_headers_from_files_and_variables(tmp_path: Path) -> None:
    """
    Secrets come from files, from the configuration, or from URL-encoded variables.

    None is shown, and none is two headers.
    """
    secret = tmp_path / "token"
    secret.write_text("from file\n")
    target = resolved({f"{OTLP}HEADERS": "x=from%20variable"}, headers="y=from flag", header_files={"z": secret})
    assert target.headers == {"x": "from variable", "y": "from flag", "z": "from file"}
    assert "from" not in repr(target)
    target = resolved({f"{OTLP}HEADERS": "authorization=from%20variable"}, headers={"Authorization": "from file"})
    assert target.headers == {"Authorization": "from file"}
    with pytest.raises(ValueError, match="the header x"):
        resolved(headers={"x": "a\nb"})


def test_a_key_in_the_query_is_not_shown() -> None:
    """Log lines name the receiver without the key in its query."""
    target = resolved(endpoint="https://c:1/v1/metrics?key=geheim")
    assert target.place == "https://c:1/v1/metrics"
    assert "key=geheim" in target.endpoint


def test_certificates(tmp_path: Path) -> None:
    """Configured certificates take precedence over those of the environment."""
    ours, theirs = tmp_path / "ours.pem", tmp_path / "theirs.pem"
    for file in (ours, theirs):
        file.touch()
    environ = {f"{OTLP}CERTIFICATE": str(theirs), f"{OTLP}CLIENT_KEY": str(theirs)}
    target = resolved(environ, tls={"ca_file": ours})
    files = target.ca_file, target.cert_file, target.key_file
    assert files == (str(ours), None, str(theirs))


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"opentelemetry", "grpc", "google", "requests"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import quotascope.cli.serve, quotascope.cli.compose
from quotascope.exporter.config import Config
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.otlp import build_push
assert build_push(Config(), {}) is None
try:
    build_push(Config.model_validate({"otlp": {}}), {})
except ConfigError as error:
    print(error)
"""


def config(**otlp: Any) -> Config:
    return Config.model_validate({"otlp": otlp})


def test_an_empty_section_is_enough() -> None:
    """Variables alone, which an operator may have put into every container, switch nothing on."""
    assert build_push(Config(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}) is None
    assert isinstance(build_push(config(), {}), OtlpPush)


def test_what_cannot_be_used_is_reported() -> None:
    """A wrong variable and a file that is missing are mistakes of the configuration."""
    with pytest.raises(ConfigError, match="OTEL_EXPORTER_OTLP_TIMEOUT"):
        build_push(config(), {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"})
    with pytest.raises(ConfigError, match="/nowhere cannot be read: No such file"):
        build_push(config(), {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"})


@pytest.mark.slow
def test_without_the_extra_everything_else_works() -> None:
    """Nothing imports OpenTelemetry before a push is wanted; then the message says what to install."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "in a clone of quotascope: pip install '.[otlp]'" in done.stdout
