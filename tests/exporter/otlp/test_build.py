from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from quotascope.exporter.config import Config
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.otlp import OtlpPush, build_push

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
    """A configuration that pushes."""
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
    assert "pip install 'quotascope[otlp]'" in done.stdout
