from __future__ import annotations

import gzip
import importlib
import sys
from types import ModuleType

import pytest

from quotascope.exporter.exposition import compression

TEXT = b'kafka_quota_utilization_ratio{user="alice"} 0.5\n' * 2000


def test_anybody_can_unpack_it() -> None:
    """What is sent is plain gzip, and small."""
    packed = compression.gzipped(TEXT)
    assert gzip.decompress(packed) == TEXT
    assert len(packed) < len(TEXT) / 20


def test_works_where_isal_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform without the quick library is served by Python's own."""
    nothing: ModuleType = None  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "isal", nothing)
    try:
        slow = importlib.reload(compression)
        assert slow.implementation is gzip
        assert gzip.decompress(slow.gzipped(TEXT)) == TEXT
    finally:
        monkeypatch.undo()
        importlib.reload(compression)
