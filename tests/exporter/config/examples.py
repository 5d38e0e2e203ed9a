"""Configurations from texts."""

from collections.abc import Iterable

import pytest

from quotascope.exporter.config import Config, Override
from quotascope.exporter.config.file import parse_document
from quotascope.exporter.config.load import build_config
from quotascope.exporter.errors import ConfigError


def build(text: str, flags: Iterable[Override] = (), /, **environ: str) -> Config:
    """Return the configuration of a file, flags and an environment."""
    document = parse_document(text, "q.yaml", environ)
    return build_config(document, "q.yaml", environ, flags)


def problems(text: str, flags: Iterable[Override] = (), /, **environ: str) -> list[str]:
    """Return the problems of a configuration."""
    with pytest.raises(ConfigError) as caught:
        build(text, flags, **environ)
    assert caught.value.subject == "q.yaml"
    return list(caught.value.problems)
