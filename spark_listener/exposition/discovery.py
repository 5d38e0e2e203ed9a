"""
Discovery of the driver by Prometheus: an entry for its `file_sd_configs`.

The entry belongs to a running driver, which touches its file once a minute. A driver that was killed cannot remove
it; so a file that was not touched for ten minutes is dead, and the next driver that writes into the same folder
removes it. Ages are differences between times of one file system: no clock of any machine matters.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Final

from quotascope.pages.files import put

BEAT_SECONDS: Final = 60.0
DEAD_AFTER_SECONDS: Final = 600.0
APP_ID: Final = "{app_id}"
_MARK = "__meta_quotascope_spark_app"
"""Label that marks our files; Prometheus drops labels with two underscores after relabeling."""


class DriverEntry:
    """
    The entry of one driver in a file.

    `app_id` becomes a label of every series of the driver. The job's name only is a `__meta` label: as `app` it would
    push aside the label of the same name that the series have already.

    Args:
        path: path of the file; ends in `.json`. `{app_id}` in its name is replaced.
        app: `spark.app.name`.
        app_id: `spark.app.id`.

    """

    def __init__(self, path: str, *, app: str, app_id: str) -> None:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", app_id)[:128].lstrip(".") or "_"
        self.path = Path(path.replace(APP_ID, name))
        self._shares_folder = APP_ID in Path(path).name
        self._labels = {"app_id": app_id, _MARK: app}
        self._text = ""

    def write(self, target: str) -> None:
        """Write the entry atomically, and remove the dead ones of the same folder. Raises `OSError`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"targets": [target], "labels": self._labels}
        self._text = json.dumps([entry], indent=2) + "\n"
        put(self.path, self._text)
        if self._shares_folder:
            _remove_dead(self.path)

    def beat(self) -> None:
        """Refresh the entry, to show that the driver lives. Raises `OSError`."""
        try:
            os.utime(self.path)
        except FileNotFoundError:  # another driver removed it as dead while a laptop slept
            put(self.path, self._text)

    def remove(self) -> None:
        """Remove the entry, unless another driver has replaced it by its own. Raises `OSError`."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.read_text(encoding="utf-8") == self._text:
                self.path.unlink()


def _remove_dead(ours: Path) -> None:
    """Remove the entries of drivers that were not refreshed for `DEAD_AFTER_SECONDS` before ours was written."""
    now = ours.stat().st_mtime
    for file in ours.parent.glob("*.json"):
        with contextlib.suppress(OSError):
            old = now - file.stat().st_mtime > DEAD_AFTER_SECONDS
            if old and file.is_file() and _is_ours(file):
                file.unlink()


def _is_ours(file: Path) -> bool:
    """Return whether an entry in the file has our mark; other files in the folder are left alone."""
    try:
        groups = json.loads(file.read_bytes())
        return any(_MARK in dict(group["labels"]) for group in groups)
    except (KeyError, RecursionError, TypeError, ValueError):
        return False
