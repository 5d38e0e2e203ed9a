"""Reads a web config file and everything that it names."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from ..config.file import ConfigDocument, read_document
from ..config.load import Origins, problems
from ..errors import ConfigError
from .model import WebConfig
from .tls import server_context


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """What holds for connections and requests from now on."""

    config: WebConfig = field(default_factory=WebConfig)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """None for plain HTTP."""
    files: tuple[Path, ...] = ()
    """What it was read from."""


def load_web_settings(path: Path) -> WebSettings:
    """The settings of a web config file. Raises ``ConfigError`` with all mistakes at once."""
    config = _config(path, read_document(path, None))
    tls = config.tls_server_config
    try:
        context = None if tls is None else server_context(tls)
    except ValueError as error:
        raise ConfigError(str(path), [str(error)]) from None
    return WebSettings(config=config, tls=context, files=tuple(_files(path, config)))


def _config(path: Path, document: ConfigDocument) -> WebConfig:
    found = [(line, f"line {line}: {text}") for line, text in document.problems]
    try:
        config = WebConfig.model_validate(
            document.data, context={"folder": path.parent}
        )
    except ValidationError as error:
        origins = Origins(lines=document.lines, root=WebConfig)
        found.extend(problems(error, origins))
    if found:
        in_order = sorted(found, key=lambda problem: problem[0])
        raise ConfigError(str(path), [text for _, text in in_order]) from None
    return config


def _files(path: Path, config: WebConfig) -> Iterator[Path]:
    yield path
    tls = config.tls_server_config
    if tls is not None:
        yield from (tls.cert_file, tls.key_file)
        if tls.client_ca_file is not None:
            yield tls.client_ca_file
