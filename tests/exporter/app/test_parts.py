from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quotascope.clients.adapter import open_quota_admin
from quotascope.exporter.app import Parts, build_parts
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.config.load import loaded
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits.admin import connection_of

BASE: dict[str, Any] = {
    "sources": [{"name": "a", "url": "http://a:1/jolokia"}, {"name": "b", "url": "http://b:1/jolokia"}],
    "discovery": {"kafka": {"url": "http://{host}:8778/jolokia"}},
    "kafka": {"bootstrap_servers": ["a:9092"]},
    "otlp": {"endpoint": "http://c:4318"},
}  # fmt: skip


def admin(kafka: KafkaConfig) -> Any:
    """Connects with the first call, which these tests do not make."""
    return open_quota_admin(connection_of(kafka))


def built(before: Parts | None = None, **changes: Any) -> Parts:
    """The parts of ``BASE`` with changes."""
    config = Config.model_validate({**BASE, **changes})
    return build_parts(loaded(config), before, open_admin=admin, environ={})


def kept(before: Parts, after: Parts) -> set[str]:
    """Which parts are the same objects; all sources, in the same order, count as one."""
    same = {
        "sources": [*map(id, before.sources)] == [*map(id, after.sources)],
        "finders": before.finders is after.finders,
        "limits": before.limits is after.limits,
        "push": before.push is after.push,
        "found": not after.renew,
    }
    return {name for name, is_same in same.items() if is_same}


ALL = {"sources", "finders", "limits", "push", "found"}


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        ({}, set()),
        ({"collection": {"max_age_seconds": 5}}, set()),
        ({"sources": BASE["sources"][:1]}, {"sources"}),
        ({"sources": []}, {"sources"}),
        ({"kafka": {"bootstrap_servers": ["b:9092"]}}, {"limits", "finders"}),
        ({"kafka": {"bootstrap_servers": ["a:9092"], "refresh_interval_seconds": 5}}, set()),
        ({"kafka": None, "discovery": {}}, {"limits", "finders"}),
        ({"discovery": {**BASE["discovery"], "source": {"timeout_seconds": 1}}}, {"found"}),
        ({"otlp": {"endpoint": "http://d:4318"}}, {"push"}),
        ({"otlp": None}, {"push"}),
        ({"cluster": "prod"}, {"push"}),
    ]
)  # fmt: skip
def test_only_what_changed_is_made_again(changes: dict[str, Any], new: set[str]) -> None:
    """Connections, and what was learned on them, outlive a change of something else; so do counts of a push."""
    before = built()
    after = built(before, **changes)
    assert ALL - kept(before, after) == new
    if before.push is not None and after.push is not None:  # a receiver would take a later start for a restart
        assert after.push.starts is before.push.starts


def test_sources_are_distinguished_by_their_names() -> None:
    """Those that stay keep their object wherever they stand now; the order is that of the configuration."""
    before = built()
    first, second = BASE["sources"]
    third = {"name": "c", "url": "http://c:1/jolokia"}
    moved = {**first, "timeout_seconds": 1}
    after = built(before, sources=[second, third, moved])
    assert [source.name for source in after.sources] == ["b", "c", "a"]
    assert after.sources[0] is before.sources[1]
    assert after.sources[2] is not before.sources[0]


def test_what_cannot_be_used_is_reported(tmp_path: Path) -> None:
    """A file of found sources is tried before any is found."""
    wrong = tmp_path / "header"
    wrong.write_bytes(b"\xff")
    common = {"header_files": {"Authorization": wrong}}
    with pytest.raises(ConfigError, match=r"discovery\.source: .* is not UTF-8"):
        built(discovery={**BASE["discovery"], "source": common})


def test_new_contents_of_a_file_count(tmp_path: Path) -> None:
    """With a rotated password, what uses it is made again."""
    file = tmp_path / "password"
    file.write_text("old")
    auth = {"username": "me", "password_file": file}
    sources = [{**BASE["sources"][0], "basic_auth": auth}, BASE["sources"][1]]
    common = {**BASE["discovery"], "source": {"basic_auth": auth}}
    before = built(sources=sources, discovery=common)
    assert kept(before, built(before, sources=sources, discovery=common)) == ALL
    file.write_text("new")
    after = built(before, sources=sources, discovery=common)
    assert ALL - kept(before, after) == {"sources", "found"}
    assert after.sources[1] is before.sources[1]


def test_shadows_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    """What is wrong in it is reported with file, line and rule."""
    file = tmp_path / "shadow.yaml"
    file.write_text("candidates: [{name: one}]")
    before = built(shadow={"file": file})
    assert [candidate.name for candidate in before.shadows] == ["one"]
    assert built(before, shadow={"file": file}).shadows is before.shadows
    assert built(before).shadows == ()
    file.write_text("candidates:\n- name: two\n  quotas:\n  - {user: alice, producer_byte_rate: -1}")
    with pytest.raises(ConfigError, match=r"shadow\.yaml: line 4: user alice: .*producer_byte_rate"):
        built(before, shadow={"file": file})
    file.write_text(f"grid: [{{user: alice, key: producer_byte_rate, values: {[*range(1, 12)]}}}]")
    with pytest.raises(ConfigError, match="11 candidates, but at most 10 shadows"):
        built(before, shadow={"file": file})
