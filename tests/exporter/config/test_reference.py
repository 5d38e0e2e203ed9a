from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from quotascope.exporter.config import Config
from quotascope.exporter.config.file import parse_document
from quotascope.exporter.config.load import build_config, section_in, value_places
from quotascope.exporter.config.reference import reference
from quotascope.exporter.config.section import Section
from quotascope.exporter.errors import ConfigError

LINES = reference().splitlines()


def sections(section: type[Section] = Config) -> Iterator[type[Section]]:
    yield section
    for field in section.model_fields.values():
        below = section_in(field.annotation)
        if below is not None:
            yield from sections(below)


def load(text: str) -> Config:
    return build_config(parse_document(text, "reference", {}), "reference", {})


def test_it_loads_to_the_defaults_and_an_example() -> None:
    """Taken as it is, the reference sets nothing but one source and one cluster."""
    config = load(reference())
    assert config.kafka is not None
    assert [source.dialect.value for source in config.sources] == ["auto"]
    assert config.model_copy(update={"sources": (), "kafka": None}) == Config()


def test_every_key_is_there() -> None:
    """A setting that is added to the models shows up in the reference."""
    keys = [key for section in sections() for key in section.model_fields]
    found = [match[1] for line in LINES if (match := re.match(r"[ #-]*(\w+):", line))]
    missing = [key for key in set(keys) if found.count(key) < keys.count(key)]
    assert missing == []


def test_every_key_follows_a_comment() -> None:
    """No setting is left without an explanation."""
    keys = [index for index, line in enumerate(LINES) if re.match(r"[ #-]*[a-z_]+:( |$)", line)]
    known = {key for section in sections() for key in section.model_fields}
    bare = [
        LINES[index]
        for index in keys
        if LINES[index].strip(" #-").partition(":")[0] in known
        and not LINES[index - 1].lstrip(" #").startswith(tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
    ]
    assert bare == []


def test_commented_out_keys_are_real() -> None:
    """With every example switched on only contradictions and missing files are left, no unknown key or wrong value."""
    text = "\n".join(re.sub(r"#(?! \S)", "", line) for line in LINES)
    environ = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
    document = parse_document(text, "r", environ)
    with pytest.raises(ConfigError) as caught:
        build_config(document, "r", environ)
    allowed = re.compile(r"expected a file that is there|exclude each other|has no effect")
    assert [text for text in caught.value.problems if not allowed.search(text)] == []


def test_variables_of_all_values_differ() -> None:
    """No two settings share an environment variable."""
    places = list(value_places())
    assert len({"__".join(place).upper() for place in places}) == len(places)
    assert ("kafka", "sasl", "password_file") in places
    assert {place[0] for place in places}.isdisjoint({"sources", "owners"})
