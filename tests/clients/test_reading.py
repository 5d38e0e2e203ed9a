from __future__ import annotations

import os
from pathlib import Path

import pytest

from quotascope.clients.reading import content_of


def test_a_file_is_read_as_a_whole(tmp_path: Path) -> None:
    """A file, or a link to one, is read whole up to the maximum length."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"x" * 1024)
    link.symlink_to(file)
    assert content_of(file, 1024) == content_of(link, 1024) == b"x" * 1024


@pytest.mark.parametrize(("length", "size"), [(2 << 10, "2 KiB"), (1 << 20, "1 MiB")])
def test_a_longer_file_is_refused(tmp_path: Path, length: int, size: str) -> None:
    """A file beyond the maximum length is refused with its name and the maximum."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * (length + 1))
    with pytest.raises(OSError, match=f"larger than {size}") as raised:
        content_of(file, length)
    assert raised.value.filename == str(file)


@pytest.mark.timeout(20)
def test_pipes_devices_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    """A named pipe without a writer holds nobody up, and a device without an end costs no memory."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file, reason in (
        (pipe, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path, "directory"),
    ):
        with pytest.raises(OSError, match=reason):
            content_of(file, 10)


def test_the_null_device_is_an_empty_file() -> None:
    """`--config /dev/null` is an empty configuration, which is read without waiting."""
    assert content_of(Path("/dev/null"), 100) == b""


def test_an_open_pipe_is_read_to_its_end() -> None:
    """An open pipe, such as a shell's `<(command)` with a slow writer, is read to its end."""
    reader, writer = os.pipe()
    try:
        os.write(writer, b"some text")
        os.close(writer)
        assert content_of(Path(f"/dev/fd/{reader}"), 100) == b"some text"
    finally:
        os.close(reader)
