from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from quotascope.exporter.config import Config, Override, load_config, sources_override
from quotascope.exporter.config.file import parse_document
from quotascope.exporter.config.load import build_config, files_in, loaded, section_in, value_places
from quotascope.exporter.config.reference import reference
from quotascope.exporter.config.section import Section
from quotascope.exporter.errors import ConfigError

EXPECTED = "expected HOST:PORT, such as broker-1:9092"
SOURCE = "sources:\n  - dialect: jolokia\n    url: http://broker-1:8778/jolokia\n"


def build(text: str, flags: Iterable[Override] = (), **environ: str) -> Config:
    document = parse_document(text, "q.yaml", environ)
    return build_config(document, "q.yaml", environ, flags)


def problems(text: str, flags: Iterable[Override] = (), **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build(text, flags, **environ)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("---\n", {}),
        ("server:\nlog:\nkafka:\n", {}),  # sections whose keys are all commented out
        # a Service called quotascope-server makes such variables in every pod of its namespace
        ("", {"QUOTASCOPE_SERVER_PORT": "tcp://10.0.0.1:80"}),
    ],
)
def test_defaults_need_nothing(text: str, environ: dict[str, str]) -> None:
    """Every setting but the sources has a default."""
    assert build(text, (), **environ) == load_config(None, {}) == Config()


def test_flags_go_before_environment_before_file() -> None:
    """The nearer a value is to the person who starts the program, the more it counts."""
    flag = Override(place=("cluster",), value="flag", origin="--cluster")
    config = build(
        "server:\n  address: 10.0.0.1\n  port: 1\ncluster: file\n",
        [flag],
        QUOTASCOPE_SERVER__PORT="2",
        QUOTASCOPE_CLUSTER="environment",
    )
    assert (config.server.address, config.server.port, config.cluster) == ("10.0.0.1", 2, "flag")


def test_file_is_read(tmp_path: Path) -> None:
    """A path leads to the same as its text."""
    path = tmp_path / "q.yaml"
    path.write_text(SOURCE)
    assert load_config(path, {}) == build(SOURCE)


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
    """All errors of a configuration come at once."""
    text = """\
cluster: prod
surces: []
sources:
  - name: a
    dialect: jolokai
    url: ftp://x
    basic_auth:
      username: u
      pasword: hunter2
  - timeout_seconds: long
server:
  prot: 3
  port: 99999
kafka:
  sasl: hunter2
  bootstrap_servers: nowhere
"""
    assert problems(text) == [
        "line 2: unknown key 'surces'; did you mean 'sources'?",
        "line 5: sources[0].dialect: expected 'auto', 'jolokia', 'prometheus', 'jmx_exporter', 'quotascope_rules', 'kafka_2_0_0', 'confluent', 'jmx_default' or 'strimzi', got 'jolokai'; did you mean 'jolokia'?",
        "line 6: sources[0].url is not a URL such as http://broker-1:8778/jolokia",
        "line 9: unknown key 'pasword' under sources[0].basic_auth; did you mean 'password'?",
        "line 10: sources[1] lacks the key 'url'",
        "line 10: sources[1].timeout_seconds is not a time such as 500ms, 5s or 1m: 'long'",
        "line 12: unknown key 'prot' under server; did you mean 'port'?",
        "line 13: server.port: expected less than or equal to 65535, got 99999",
        "line 15: kafka.sasl: expected keys and values",
        "line 16: kafka.bootstrap_servers[0] expected HOST:PORT, such as broker-1:9092",
    ]


def test_mistakes_of_form_and_of_content_are_reported_together() -> None:
    """A key given twice or a missing variable does not hide what else is wrong, nor cause a second message."""
    text = "server:\n  port: ${NOPE}\n  prot: 1\nlog: {}\nlog: {level: loud}\n"
    assert problems(text) == [
        "line 2: the environment has no variable NOPE",
        "line 3: unknown key 'prot' under server; did you mean 'port'?",
        "line 5: the key 'log' is there already in line 4",
        "line 5: log.level: expected 'debug', 'info', 'warning' or 'error', got 'loud'",
    ]


def test_unknown_keys_and_variables_are_reported() -> None:
    """Without a nearest key the valid ones are named; a variable that looks like ours but sets nothing is as wrong as an unknown key."""
    assert problems("log:\n  zzz: 1\n") == ["line 2: unknown key 'zzz' under log; known: format, level"]
    assert problems("", QUOTASCOPE_SERVER__PROT="1") == [
        "unknown environment variable QUOTASCOPE_SERVER__PROT; did you mean QUOTASCOPE_SERVER__PORT?"
    ]


def test_origin_outside_the_file_is_named() -> None:
    """A wrong flag or variable is called by its own name."""
    flag = Override(place=("server", "port"), value="http", origin="--port")
    assert problems("server:\n  port: 1\n", [flag]) == ["--port: server.port: expected a whole number, got 'http'"]
    assert problems("", QUOTASCOPE_LOG__LEVEL="loud") == [
        "QUOTASCOPE_LOG__LEVEL: log.level: expected 'debug', 'info', 'warning' or 'error', got 'loud'"
    ]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *((address, "expected HOST:PORT, :PORT or [IPV6]:PORT") for address in ("9749", "::1", "host:", "host:http")),
        ("[::1]:65536", "expected a port up to 65535"),
    ],
)
def test_listen_address_is_host_and_port(address: str, expected: str) -> None:
    """As exporters of Prometheus take it; what is not one is named."""
    name = "--web.listen-address"
    flag = Override(place=("server", "listen_addresses"), value=[address], origin=name)
    assert problems("", [flag]) == [f"{name}: server.listen_addresses[0] {expected}"]


def test_patterns_of_the_environment_are_one_in_a_line() -> None:
    """A pattern may hold commas and spaces."""
    config = build("", QUOTASCOPE_CARDINALITY__EXCLUDE_USERS="CN=a b.*\nc{1,2}")
    assert config.cardinality.exclude_users == ("CN=a b.*", "c{1,2}")


@pytest.mark.parametrize("server", ["a:1", "broker-1:9092", "[::1]:65535"])
def test_servers_of_kafka(server: str) -> None:
    """From port 1 to 65535."""
    config = build(f"kafka: {{bootstrap_servers: ['{server}']}}")
    assert config.kafka is not None
    assert config.kafka.bootstrap_servers == (server,)


def test_section_can_begin_in_the_environment() -> None:
    """Kafka's whole connection may come from variables."""
    config = build(
        "",
        QUOTASCOPE_KAFKA__BOOTSTRAP_SERVERS="a:9092, b:9092,",
        QUOTASCOPE_KAFKA__SECURITY_PROTOCOL="SASL_PLAINTEXT",
        QUOTASCOPE_KAFKA__SASL__USERNAME="me",
        QUOTASCOPE_KAFKA__SASL__PASSWORD="pw",
    )
    sasl = {"username": "me", "password": "pw"}
    assert config == Config.model_validate(
        {"kafka": {"bootstrap_servers": ["a:9092", "b:9092"], "security_protocol": "SASL_PLAINTEXT", "sasl": sasl}}
    )


def test_sources_in_short_form() -> None:
    """Flags and one variable name sources as [DIALECT[:NODE]=]URL; without one it is found out."""
    texts = ["jmx_exporter:3=http://b3:9404/metrics", "http://b1:8778/jolokia"]
    config = build(SOURCE, [sources_override(texts, "--source")])
    assert [(s.dialect.value, s.node_id, s.url) for s in config.sources] == [
        ("jmx_exporter", 3, "http://b3:9404/metrics"),
        ("auto", None, "http://b1:8778/jolokia"),
    ]
    assert build("", QUOTASCOPE_SOURCES=" ".join(texts)) == config
    query = "http://b1:8778/jolokia?ttl=1"
    (source,) = build("", [sources_override([query], "--source")]).sources
    assert (source.dialect.value, source.url) == ("auto", query)
    assert problems("", [sources_override(["jolokai=http://b:1"], "--source")]) == [
        "--source: sources[0].dialect: expected 'auto', 'jolokia', 'prometheus', 'jmx_exporter', 'quotascope_rules', 'kafka_2_0_0', 'confluent', 'jmx_default' or 'strimzi', got 'jolokai'; did you mean 'jolokia'?"
    ]


def kafka(keys: str) -> str:
    return f"kafka: {{bootstrap_servers: a:1, {keys}}}"


def sasl(keys: str) -> str:
    return kafka(f"security_protocol: SASL_SSL, sasl: {{{keys}}}")


def oauth(keys: str) -> str:
    return sasl(f"mechanism: OAUTHBEARER, {keys}")


def source(keys: str) -> str:
    return f"sources: [{{{keys}}}]"


def owners(keys: str) -> str:
    return f"owners: [{{team: a, {keys}}}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (kafka("security_protocol: SASL_SSL"), "kafka SASL_SSL needs sasl"),
        (kafka("sasl: {username: u, password: p}"), "kafka sasl has no effect with PLAINTEXT: set security_protocol"),
        (kafka("tls: {verify: false}"), "kafka tls has no effect with PLAINTEXT: set security_protocol"),
        ("kafka: {bootstrap_servers: []}", "kafka.bootstrap_servers names no broker"),
        (sasl("username: u"), "kafka.sasl needs password or password_file"),
        (sasl("mechanism: GSSAPI, username: u"), "kafka.sasl username has no effect with GSSAPI, only with PLAIN and SCRAM-SHA-256 and SCRAM-SHA-512"),
        (sasl("username: u, password: p, token_file: /t"), "kafka.sasl token_file has no effect with PLAIN, only with OAUTHBEARER"),
        (oauth(""), "kafka.sasl needs token_url or token_file or token_command"),
        (oauth("token_file: /t, token_command: c"), "kafka.sasl token_file and token_command exclude each other"),
        (oauth("token_file: /t, scope: s"), "kafka.sasl scope needs token_url"),
        (oauth("token_url: 'https://u:p@a/t'"), "kafka.sasl.token_url is not a URL such as https://sso.corp/token; the login belongs in client_id and client_secret"),
        (oauth("token_url: 'https://a/t', client_id: c"), "kafka.sasl needs client_secret or client_secret_file"),
        (oauth('token_command: "a \'b"'), "kafka.sasl.token_command No closing quotation"),
        (oauth("token_command: ''"), "kafka.sasl.token_command names no command"),
        (oauth("token_command: [a, {hunter2: 5}]"), "kafka.sasl.token_command[1]: expected a valid string"),
        (kafka("security_protocol: SASL_PLAINTEXT, sasl: {mechanism: AWS_MSK_IAM}"), "kafka AWS_MSK_IAM needs security_protocol SASL_SSL"),
        (source("url: 'http://a:1', headers: {'a b': x}"), "sources[0].headers.a b is not the name of an HTTP header"),
        (source("url: 'http://a', basic_auth: {username: 'a:b', password: x}"), "sources[0].basic_auth.username must not contain a colon: HTTP ends the name there"),
        (source("url: 'http://u:pw@a:1/'"), "sources[0].url must not contain a user or password; those of a source belong in basic_auth or headers"),
        ("kafka: {bootstrap_servers: 'u:hunter2@a:1'}", "kafka.bootstrap_servers[0] must not contain a user or password; those of Kafka belong in sasl"),
        (source("url: 'http://a:x/'"), "sources[0].url is not a URL such as http://broker-1:8778/jolokia"),
        (source("url: 'http://a:1'}, {dialect: jolokia, url: 'http://a:1'"), "two sources are called 'a:1': give them a name"),
        (source("url: 'https://a', tls: {key_file: /dev/null}"), "sources[0].tls.key_file: expected a file that is there, got '/dev/null'"),
        (source(f"url: 'https://a', tls: {{key_file: {__file__}}}"), "sources[0].tls key_file needs cert_file"),
        (source(f"url: 'http://a', basic_auth: {{username: u, password: p, password_file: {__file__}}}"), "sources[0].basic_auth password and password_file exclude each other"),
        ("sources: jolokia", "sources: expected a list"),
        ("cardinality: {include_users: [a, '(']}", "cardinality.include_users[1] '(' is not an RE2 expression: missing ): ("),
        ("owners: [{user: alice}]", "owners[0] lacks the key 'team'"),
        (owners("user: b}, {team: a, user: b, user_pattern: c"), "owners[1] user and user_pattern exclude each other"),
        (owners(""), "owners[0] needs one of user, user_pattern, client_id, client_id_pattern"),
        (owners("client_id_pattern: '('"), "owners[0].client_id_pattern '(' is not an RE2 expression: missing ): ("),
        (owners("users: b"), "unknown key 'users' under owners[0]; did you mean 'user'?"),
        *(
            (f"kafka: {{bootstrap_servers: ['{server}']}}", f"kafka.bootstrap_servers[0] {EXPECTED}")
            for server in ("", "a", ":9092", "a:", "a:0", "a:65536", "a:-1", "a:1.5", "a:x", "a:1:", "9092")
        ),
    ]
)  # fmt: skip
def test_contradictions_are_reported(text: str, expected: str) -> None:
    """What cannot work together is found before anything is connected."""
    assert problems(text) == [f"line 1: {expected}"]


@pytest.mark.parametrize(
    "text",
    [
        "kafka: {bootstrap_servers: a:1, security_protocol: SASL_SSL, sasl: {username: u, password: 4711}}",
        "kafka: {bootstrap_servers: a:1, sasl: 4711}",
        "sources: [{dialect: jolokia, url: 'http://a', basic_auth: {username: u, password: [4711]}}]",
        "sources: [{dialect: jolokia, url: 'http://a', headers: {X-Key: 4711}}]",
        "sources: [{dialect: jolokia, url: 'http://u:4711@a'}]",
        "kafka: {bootstrap_servers: a:1, security_protocol: '${SECRET}'}",
    ],
)
def test_secrets_are_in_no_message(text: str) -> None:
    """Neither a wrong secret, nor one in a wrong place, nor a filled-in variable is repeated."""
    assert "4711" not in str(problems(text, SECRET="4711"))


def test_password_in_the_url_of_a_flag_is_in_no_message() -> None:
    """Not even where an = in the URL could be taken for the end of a dialect."""
    flag = sources_override(["http://u:hunter2@b1/jolokia?ttl=1"], "--source")
    assert problems("", [flag]) == [
        "--source: sources[0].url must not contain a user or password; those of a source belong in basic_auth or headers"
    ]


def test_secrets_are_in_no_representation() -> None:
    """A configuration can be logged."""
    config = build(
        "kafka: {bootstrap_servers: a:1, security_protocol: SASL_SSL, sasl: {username: u, password: hunter2}}\n"
        "sources: [{dialect: jolokia, url: 'http://a', headers: {X-Key: hunter2}}]\n"
    )
    assert "hunter2" not in f"{config!r} {config} {config.model_dump_json()}"


def test_problems_are_short_and_printable() -> None:
    """YAML can write any character into the name of a header, and any text may be pasted into the file."""
    headers = r'headers: {"a\nb\e[31m": x}'
    (problem,) = problems(f"sources: [{{dialect: jolokia, url: 'http://a', {headers}}}]")
    assert problem.isprintable()
    (problem,) = problems(f"server: {{port: {'x' * 5_000}}}")
    assert len(problem) < 150
    assert problem.endswith("…")


@pytest.mark.parametrize("change", ["", "new password", None])
def test_the_content_of_named_files_counts(tmp_path: Path, change: str | None) -> None:
    """A password that was rotated, or a file that went away, is another setting of those alone who use it."""
    file = tmp_path / "password"
    file.write_text("")
    auth = f"basic_auth: {{username: me, password_file: {file}}}, header_files: {{X: {file}}}"
    text = f"sources: [{{url: 'http://a:1', {auth}}}, {{url: 'http://b:1'}}]"
    config = build(text)
    assert list(files_in(config)) == [file, file]
    before = loaded(config)
    file.unlink() if change is None else file.write_text(change)
    after = loaded(config)
    same = [after.same(before, each, each) for each in config.sources]
    assert same == [change == "", True]
    assert not after.same(before, config.sources[1], config.sources[0])
    assert not change or change not in repr(after)


REFERENCE = reference().splitlines()


def sections(section: type[Section] = Config) -> Iterator[type[Section]]:
    yield section
    for field in section.model_fields.values():
        below = section_in(field.annotation)
        if below is not None:
            yield from sections(below)


def test_the_reference_loads_to_the_defaults_and_an_example() -> None:
    """Taken as it is, the reference sets nothing but one source and one cluster."""
    config = build(reference())
    assert config.kafka is not None
    assert [source.dialect.value for source in config.sources] == ["auto"]
    assert config.model_copy(update={"sources": (), "kafka": None}) == Config()


def test_every_key_is_in_the_reference() -> None:
    """A setting that is added to the models shows up in the reference."""
    keys = [key for section in sections() for key in section.model_fields]
    found = [match[1] for line in REFERENCE if (match := re.match(r"[ #-]*(\w+):", line))]
    missing = [key for key in set(keys) if found.count(key) < keys.count(key)]
    assert missing == []


def test_every_key_of_the_reference_follows_a_comment() -> None:
    """No setting is left without an explanation."""
    known = {key for section in sections() for key in section.model_fields}
    bare = [
        line
        for before, line in pairwise(REFERENCE)
        if (key := re.match(r"[ #-]*([a-z_]+):( |$)", line))
        and key[1] in known
        and not re.match("[ #]*[A-Za-z]", before)
    ]
    assert bare == []


def test_commented_out_keys_are_real() -> None:
    """With every example switched on only contradictions and missing files are left, no unknown key or wrong value."""
    text = "\n".join(re.sub(r"#(?! \S)", "", line) for line in REFERENCE)
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
