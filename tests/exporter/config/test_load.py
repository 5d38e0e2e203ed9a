from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.exporter.config.examples import build, problems

from quotascope.exporter.config import Config, Override, PrometheusConfig, load_config, sources_override
from quotascope.exporter.config.load import files_in, loaded, section_in, value_places
from quotascope.exporter.config.reference import reference
from quotascope.exporter.config.section import Section

SHORT = "jmx_exporter:3=http://b3:9404/metrics", "http://b1:8778/jolokia?ttl=1"
SOURCES = {"dialect": "jmx_exporter", "node_id": 3, "url": "http://b3:9404/metrics"}, {"url": SHORT[1]}


@pytest.mark.parametrize(
    ("text", "flags", "environ", "expected"),
    [
        ("", [], {}, {}),
        ("# only a comment\n", [], {}, {}),
        ("---\n", [], {}, {}),
        ("server:\nlog:\nkafka:\n", [], {}, {}),  # sections whose keys are all commented out
        # a Service called quotascope-server makes such variables in every pod of its namespace
        ("", [], {"QUOTASCOPE_SERVER_PORT": "tcp://10.0.0.1:80"}, {}),
        (
            "{server: {address: 10.0.0.1, port: 1}, cluster: file}",
            [Override(place=("cluster",), value="flag", origin="--cluster")],
            {"QUOTASCOPE_SERVER__PORT": "2", "QUOTASCOPE_CLUSTER": "environment"},
            {"server": {"address": "10.0.0.1", "port": 2}, "cluster": "flag"},
        ),
        (
            "",
            [],
            {
                "QUOTASCOPE_KAFKA__BOOTSTRAP_SERVERS": "a:1, broker-1:9092,[::1]:65535,",
                "QUOTASCOPE_KAFKA__SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                "QUOTASCOPE_KAFKA__SASL__USERNAME": "me",
                "QUOTASCOPE_KAFKA__SASL__PASSWORD": "pw",
            },
            {
                "kafka": {
                    "bootstrap_servers": ("a:1", "broker-1:9092", "[::1]:65535"),
                    "security_protocol": "SASL_PLAINTEXT",
                    "sasl": {"username": "me", "password": SecretStr("pw")},
                }
            },
        ),
        (
            "otlp: {tls: {ca_file: '${FILE}'}}",
            [],
            {"FILE": __file__},
            {"otlp": {"tls": {"ca_file": Path(__file__)}}},
        ),
        (
            "otlp: {tls: {cert_file: '${FILE}', key_file: '${FILE}'}}",
            [],
            {"FILE": __file__},
            {"otlp": {"tls": {"cert_file": Path(__file__), "key_file": Path(__file__)}}},
        ),
        (  # a pattern may hold commas and spaces
            "",
            [],
            {"QUOTASCOPE_CARDINALITY__EXCLUDE_USERS": "CN=a b.*\nc{1,2}"},
            {"cardinality": {"exclude_users": ("CN=a b.*", "c{1,2}")}},
        ),
        ("sources: [{url: 'http://a'}]", [sources_override(SHORT, "--source")], {}, {"sources": SOURCES}),
        ("", [], {"QUOTASCOPE_SOURCES": " ".join(SHORT)}, {"sources": SOURCES}),
    ],
)
def test_flags_go_before_environment_before_file(
    text: str, flags: Sequence[Override], environ: dict[str, str], expected: dict[str, Any]
) -> None:
    """A flag overrides the environment, which overrides the file; other settings have their defaults."""
    assert build(text, flags, **environ).model_dump(exclude_defaults=True) == expected


def test_file_is_read(tmp_path: Path) -> None:
    """A path gives the same as its text, and no path the defaults."""
    path = tmp_path / "q.yaml"
    path.write_text("server: {port: 1}")
    assert load_config(path, {}) == build("server: {port: 1}")
    assert load_config(None, {}) == Config()


def test_secrets_are_in_no_representation() -> None:
    """A configuration's representation has no secret, so that it can be logged."""
    config = build(
        "kafka: {bootstrap_servers: a:1, security_protocol: SASL_SSL, sasl: {username: u, password: hunter2}}\n"
        "sources: [{dialect: jolokia, url: 'http://a', headers: {X-Key: hunter2}}]\n"
    )
    assert "hunter2" not in f"{config!r} {config} {config.model_dump_json()}"


@pytest.mark.parametrize("change", ["", "new password", None])
def test_the_content_of_named_files_counts(tmp_path: Path, change: str | None) -> None:
    """The content of a named file is part of the settings that use it, as a rotated password shows."""
    file = tmp_path / "password"
    file.write_text("")
    auth = f"basic_auth: {{username: me, password_file: {file}}}, header_files: {{X: {file}}}"
    text = f"sources: [{{url: 'http://a:1', {auth}}}, {{url: 'http://b:1'}}]"
    config = build(text)
    assert list(files_in(config)) == [file, file]
    old_loaded = loaded(config)
    file.unlink() if change is None else file.write_text(change)
    new_loaded = loaded(config)
    is_same = [new_loaded.same(old_loaded, source, source) for source in config.sources]
    assert is_same == [change == "", True]
    assert not new_loaded.same(old_loaded, config.sources[1], config.sources[0])
    assert not change or change not in repr(new_loaded)


REFERENCE = reference().splitlines()


def sections(section: type[Section] = Config) -> Iterator[type[Section]]:
    yield section
    for field in section.model_fields.values():
        below = section_in(field.annotation)
        if below is not None:
            yield from sections(below)


def test_the_reference_loads_to_the_defaults_and_an_example() -> None:
    """The unchanged reference sets nothing but one source and one cluster."""
    assert build(reference()).model_dump(exclude_defaults=True) == {
        "sources": ({"url": "http://broker-1:8778/jolokia"},),
        "kafka": {"bootstrap_servers": ("broker-1:9092", "broker-2:9092")},
    }


def test_every_key_is_in_the_reference() -> None:
    """A setting that is added to the models shows up in the reference."""
    keys = [key for section in sections() for key in section.model_fields]
    documented = [match[1] for line in REFERENCE if (match := re.match(r"[ #-]*(\w+):", line))]
    missing = [key for key in set(keys) if documented.count(key) < keys.count(key)]
    assert missing == []


def test_every_key_of_the_reference_follows_a_comment() -> None:
    """Every key of the reference follows a comment that explains it."""
    fields = {key for section in sections() for key in section.model_fields}
    bare = [
        line
        for line_before, line in pairwise(REFERENCE)
        if (key := re.match(r"[ #-]*([a-z_]+):( |$)", line))
        and key[1] in fields
        and not re.match("[ #]*[A-Za-z]", line_before)
    ]
    assert bare == []


def test_commented_out_keys_are_real() -> None:
    """The example with every comment switched on has no unknown key and no wrong value."""
    text = "\n".join(re.sub(r"#(?! \S)", "", line) for line in REFERENCE)
    environ = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
    allowed = re.compile(r"expected a file that is there|exclude each other|has no effect")
    assert [text for text in problems(text, **environ) if not allowed.search(text)] == []


def test_variables_of_all_values_differ() -> None:
    """No two settings share an environment variable."""
    places = list(value_places())
    assert len({"__".join(place).upper() for place in places}) == len(places)
    assert ("kafka", "sasl", "password_file") in places
    assert {place[0] for place in places}.isdisjoint({"sources"})


def test_an_entry_can_be_a_prometheus_server() -> None:
    """Agents and Prometheus servers are in one list, in the file and in the short form."""
    text = """
sources:
  - url: http://broker-1:8778/jolokia
  - prometheus: {url: 'http://prometheus:9090', selector: ' {job="kafka", cluster=~"a|b",} ', nodes: {'a:1': 1}}
"""
    config = build(text)
    assert [source.label for source in config.sources] == ["broker-1:8778", "prometheus:9090"]
    assert [source.url for source in config.agents] == ["http://broker-1:8778/jolokia"]
    (server,) = config.prometheus_servers
    assert (server.selector, server.nodes) == ('job="kafka", cluster=~"a|b"', {"a:1": 1})
    assert config.finds_nodes
    assert build("", [sources_override(["prometheus=http://p:9090/x=y"], "--source")]).prometheus_servers == (
        PrometheusConfig(url="http://p:9090/x=y"),
    )


def test_secrets_of_a_prometheus_server_are_in_no_representation() -> None:
    """Secrets of a Prometheus server are hidden in the configuration and in messages about it."""
    text = (
        "sources: [{prometheus: {url: 'http://a', headers: {X-Key: hunter2}, basic_auth: {username: a, password: %s}}}]"
    )
    assert "hunter2" not in repr(build(text % "hunter2"))
    assert "hunter2" not in str(problems(text % "[hunter2]"))
