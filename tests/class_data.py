"""
Archives of the classes that a JVM loads (class data sharing): a JVM that starts with one needs half the processor time.

An archive is of one JDK and one class path. A JVM that it does not fit loads its classes as ever, without a message.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Final

_ARCHIVE: Final = "classes.jsa"
_QUIET: Final = "-Xlog:cds=off,cds+dynamic=off,class+path=off"


def archives(beside: Path, name: str) -> Path:
    """The folder of an archive for the JDK that is installed, whether it exists or not."""
    java = Path(shutil.which("java") or "java").resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    key = hashlib.sha256(f"{java} {changed} {name}".encode()).hexdigest()[:16]
    return beside / f"classes-{key}"


def using(folder: Path) -> tuple[str, ...]:
    """The options of a JVM that starts with the archive in a folder; none where there is no archive."""
    archive = folder / _ARCHIVE
    return (f"-XX:SharedArchiveFile={archive}", _QUIET) if archive.is_file() else ()


def making(folder: Path) -> tuple[str, ...]:
    """The options of a JVM that writes the archive when it ends in order."""
    return f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}", "-Xlog:cds=off,cds+dynamic=off"
