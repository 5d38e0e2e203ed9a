"""Where a user gets the executor plugin's jar from."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from quotascope.pages.files import put

from ..errors import JarUnavailable
from .building import JAR, BuildFailed, build


def write_jar(target: Path) -> None:
    """
    Write the executor plugin's jar: the one that the wheel carries, else one that is built now.

    Raises `JarUnavailable`.
    """
    shipped = Path(__file__).with_name(JAR)
    try:
        if shipped.exists():
            put(target, shipped.read_bytes())
            return
        built = BytesIO()
        build(built)
        put(target, built.getvalue())
    except (BuildFailed, OSError) as error:
        raise JarUnavailable(
            f"the plugin's jar is not written to {target}: {getattr(error, 'strerror', error)}"
        ) from error
