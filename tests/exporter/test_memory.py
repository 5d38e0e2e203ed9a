"""The memory by the control groups, and whether the numbers of all sources fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exporter.examples import health

from quotascope.exporter.diagnosis.probes import memory_findings
from quotascope.exporter.memory import MEBIBYTE, limit_bytes, machine_bytes, needed_bytes, numbers_within


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "1073741824\n"}, 1 << 30),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "500000000\n"}, 500_000_000),
        ("0::/a\n", {"a/memory.max": "max\n"}, None),
        ("5:cpu:/x\n4:memory:/x\n0::/\n", {"memory/x/memory.limit_in_bytes": "300000000\n"}, 300_000_000),
        ("4:memory:/gone\n", {"memory/memory.limit_in_bytes": "200000000\n"}, 200_000_000),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ("nonsense\n", {}, None),
    ],
    ids=["own group", "parent", "none", "version 1", "of a container", "no limit in version 1", "unreadable"],
)
def test_limit_of_the_control_group(tmp_path: Path, group: str, files: dict[str, str], expected: int | None) -> None:
    """The least of all groups that the process is in; nothing is made up where none can be read."""
    proc, root = tmp_path / "cgroup", tmp_path / "root"
    proc.write_text(group)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert limit_bytes(proc, root) == expected
    assert limit_bytes(tmp_path / "missing", root) is None


def test_what_fits_is_what_is_needed() -> None:
    """The shipped limit holds the numbers of 20,000 clients under three quota types on three brokers."""
    assert needed_bytes(numbers_within(1 << 30)) <= 1 << 30
    assert numbers_within(1 << 30) >= 3 * 20_000 * 6
    assert numbers_within(MEBIBYTE) == 0
    assert machine_bytes() > MEBIBYTE


def test_doctor_compares_what_is_needed_with_the_limit() -> None:
    """The finding compares the memory for all readable sources with the limit, and counts the others."""
    sources = [
        health("a", readings=200_000),
        health("b", readings=100_000),
        health("c", readings=0, up=False),
    ]
    assert memory_findings(sources, None) == []
    assert memory_findings(sources, 1 << 30) == []
    (finding,) = memory_findings(sources, 256 * MEBIBYTE)
    assert finding.text == (
        "300,000 quota values of 2 sources, beside those of 1 that cannot be read, need about 785 MiB of memory, "
        "but the control group in which "
        "this runs allows 256 MiB."
    )
    assert "raise it to 983 MiB" in finding.advice
