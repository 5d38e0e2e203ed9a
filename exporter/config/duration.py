"""Times on the command line, written as in the configuration."""

from __future__ import annotations

from typing import Final

from pydantic import TypeAdapter, ValidationError

from ..errors import ConfigError
from .section import Seconds

_SECONDS: Final = TypeAdapter[float](Seconds)


def seconds_of(text: str, origin: str) -> float:
    """The seconds that ``500ms``, ``5s``, ``1m`` or ``7`` stand for. Raises ``ConfigError``, which names the ``origin``."""
    try:
        return _SECONDS.validate_python(text)
    except ValidationError:
        problem = f"expected a time such as 500ms, 5s or 1m, got {text!r}"
        raise ConfigError(origin, [problem]) from None
