from __future__ import annotations

import json

import pytest

from quotascope.exporter.discovery.file_sd import MAX_TARGETS, parse


def test_json_and_yaml_say_the_same() -> None:
    """Both formats of Prometheus, each target with the labels of its group."""
    as_json = (
        '[{"targets": ["a:1", "b:2"], "labels": {"job": "kafka"}}, {"targets": ["c"]}]'
    )
    as_yaml = "- targets: [a:1, 'b:2']\n  labels: {job: kafka}\n- targets:\n  - c\n"
    found = parse("x.json", as_json)
    assert found == parse("x.yml", as_yaml)
    assert [str(target.address) for target in found] == ["a:1", "b:2", "c"]
    assert [dict(target.labels) for target in found] == [{"job": "kafka"}] * 2 + [{}]


@pytest.mark.parametrize("text", ["", "[]", "- targets: []"])
def test_nobody_is_no_mistake(text: str) -> None:
    """An empty YAML file is a list of nobody."""
    assert parse("x.yml", text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"targets": []}', "expected a list of groups"),
        ("[1]", "group 1: expected `targets`"),
        ('[{"targets": "a:1"}]', "group 1: targets are not a list"),
        ('[{"targets": [1]}]', "group 1: targets are not a list"),
        ('[{"targets": ["a:1"]}, {"labels": {}}]', "group 2: targets are not a list"),
        ('[{"targets": [], "labels": {"a": 1}}]', "labels are not names with texts"),
        ('[{"targets": [], "url": "http://x"}]', "and nothing else"),
        ('[{"targets": ["http://evil/x"]}]', "group 1: 'http://evil/x'"),
        ('[{"targets": ["a:1', "cannot be parsed"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "cannot be parsed"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    """The whole file is refused with the place and the reason."""
    with pytest.raises(ValueError, match=problem):
        parse("x.json", text)


@pytest.mark.parametrize(
    "text",
    [
        "- &a {targets: []}\n- *a",
        "- !!python/name:os.system",
        "- targets: [\x00]",
        "a: ]",
    ],
)
def test_yaml_that_is_refused(text: str) -> None:
    """Aliases can stand for any amount of memory, tags for any object."""
    with pytest.raises(ValueError, match="cannot be parsed"):
        parse("x.yml", text)


def test_too_many_targets() -> None:
    """More targets than any cluster has nodes are a mistake."""
    many = json.dumps([{"targets": ["a:1"] * (MAX_TARGETS + 1)}])
    with pytest.raises(ValueError, match=f"more than {MAX_TARGETS} targets"):
        parse("x.json", many)
