"""Whether files with passwords, tokens and keys are for us alone."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..config import Config
from ..config.loaded import named_files
from ..errors import ConfigError
from ..web.settings import load_web_settings
from ..web.web_config import WebConfig
from .result import Result, Verdict

_SECRET_FIELDS: Final = frozenset(
    {
        "header_files",
        "key_file",
        "key_password_file",
        "password_file",
        "web_config_file",
    }
)


def secrets(config: Config) -> Iterator[Result]:
    """One result for each such file that everybody on this machine can read."""
    for path in dict.fromkeys(_secret_files(config)):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if mode & stat.S_IROTH:
            yield Result(
                check="secrets",
                subject=str(path),
                verdict=Verdict.LOOK,
                text="Everybody on this machine can read it.",
                advice=f"chmod o-rwx {path}",
            )


def _secret_files(config: Config) -> Iterator[Path]:
    for part in (config, _web_config(config)):
        yield from (path for name, path in named_files(part) if name in _SECRET_FIELDS)


def _web_config(config: Config) -> WebConfig | None:
    """What the web config file says; None where there is none, or one that cannot be used."""
    file = config.server.web_config_file
    if file is None:
        return None
    try:
        return load_web_settings(file).config
    except ConfigError:
        return None  # told where it is served with
