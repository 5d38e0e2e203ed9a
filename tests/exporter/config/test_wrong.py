"""
Configurations that are wrong.

Each comment in them is the problem that is reported for its line, or how it begins, up to `…`. A line that is a comment
alone goes with the one above.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tests.exporter.config.examples import problems

from quotascope.exporter.config import Override, load_config, sources_override
from quotascope.exporter.errors import ConfigError

WRONG: Final = r"""
cluster: "\ud800"  # cluster contains an incomplete Unicode character
surces: []  # unknown key 'surces'; did you mean 'sources'?
sources:
  - name: a
    dialect: jolokai  # sources[0].dialect: expected 'auto', 'jolokia', …
    url: ftp://x  # sources[0].url is not a URL such as http://broker-1:8778/jolokia
    basic_auth:
      username: u
      pasword: hunter2  # unknown key 'pasword' under sources[0].basic_auth; did you mean 'password'?
  - timeout_seconds: long  # sources[1] lacks the key 'url'
  # sources[1].timeout_seconds is not a time such as 500ms, 5s or 1m: 'long'
  - {url: 'http://a:1', headers: {'a b': x}}  # sources[2].headers has a key that is not the name of an HTTP header
  - {url: 'http://a', basic_auth: {username: 'a:b', password: x}}
  # sources[3].basic_auth.username must not contain a colon: HTTP ends the name there
  - {url: 'http://u:hunter2@a:1/'}
  # sources[4].url must not contain a user or password; those of a source belong in basic_auth or headers
  - {url: 'http://a:x/'}  # sources[5].url is not a URL such as http://broker-1:8778/jolokia
  - {url: 'https://a', tls: {key_file: /dev/null}}
  # sources[6].tls.key_file: expected a file that is there, got '/dev/null'
  - {url: 'https://a', tls: {key_file: '${FILE}'}}  # sources[7].tls key_file needs cert_file
  - {url: 'http://a', basic_auth: {username: u, password: p, password_file: '${FILE}'}}
  # sources[8].basic_auth password and password_file exclude each other
  - {url: 'http://a', basic_auth: {username: u, password: [hunter2]}}
  # sources[9].basic_auth.password: expected a valid string
  - {url: 'http://a', headers: {X-Key: 4711}}  # sources[10].headers.X-Key: expected a valid string
  - {url: 'http://a', headers: {"a\nb\e[31m": x}}
  # sources[11].headers has a key that is not the name of an HTTP header
  - prometheus: {url: 'http://a:1/metrics'}  # sources[12].prometheus.url is not the address of a Prometheus server, …
  - prometheus: {url: 'http://a:1', selector: '{job="a"} or up'}
  # sources[13].prometheus.selector is not a list of matchers such as …
  - prometheus: {url: 'http://a:1', node_id: 1}
  # unknown key 'node_id' under sources[14].prometheus; did you mean 'nodes'?
  - prometheus: {nodes: {a: -1}}  # sources[15].prometheus lacks the key 'url'
  # sources[15].prometheus.nodes.a: expected greater than or equal to 0, got -1
  - prometheus: http://a:1  # sources[16].prometheus: expected keys and values
server:
  prot: 3  # unknown key 'prot' under server; did you mean 'port'?
  port: 99999  # server.port: expected less than or equal to 65535, got 99999
  max_requests: ${NOPE}  # the environment has no variable NOPE
  listen_addresses:
    - ':9749'
    - '9749'  # server.listen_addresses[1] expected HOST:PORT, :PORT or [IPV6]:PORT
    - ::1  # server.listen_addresses[2] expected HOST:PORT, …
    - 'host:'  # server.listen_addresses[3] expected HOST:PORT, …
    - host:http  # server.listen_addresses[4] expected HOST:PORT, …
    - '[::1:1'  # server.listen_addresses[5] expected HOST:PORT, …
    - '[::1]:65536'  # server.listen_addresses[6] expected a port up to 65535
kafka:
  sasl: hunter2  # kafka.sasl: expected keys and values
  bootstrap_servers: nowhere  # kafka.bootstrap_servers[0] expected HOST:PORT, such as broker-1:9092
cardinality: {include_users: [a, '(']}  # cardinality.include_users[1] '(' is not an RE2 expression: missing ): (
owners:  # owners is the file of teams now: write `teams: FILE` (documentation: Teams)
  - {user: alice, team: a}
default_owner: a  # default_owner is the last team of the file of teams now: write …
teams: nowhere.yaml  # teams: expected a file that is there, got 'nowhere.yaml'
thresholds: {}  # thresholds belongs to the alerts' configuration: put it there, …
alerts_config: nowhere.yaml  # alerts_config: expected a file that is there, got 'nowhere.yaml'
log: {}
log: {level: loud, zzz: 1}  # the key 'log' is there already in line 59
  # log.level: expected 'debug', 'info', 'warning' or 'error', got 'loud'
  # unknown key 'zzz' under log; known: format, level
"""

KAFKA: Final = """
security_protocol: SASL_SSL  # kafka SASL_SSL needs sasl
security_protocol: '${SECRET}'
  # kafka.security_protocol: expected 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL_SSL', got '${SECRET}'
sasl: {username: u, password: p}  # kafka sasl has no effect with PLAINTEXT: set security_protocol
tls: {verify: false}  # kafka tls has no effect with PLAINTEXT: set security_protocol
security_protocol: SASL_PLAINTEXT, sasl: {mechanism: AWS_MSK_IAM}  # kafka AWS_MSK_IAM needs security_protocol SASL_SSL
"""
"""Keys of `kafka` that contradict each other or lack another one, each line by itself."""
SASL: Final = """
username: u  # kafka.sasl needs password or password_file
username: u, password: 4711  # kafka.sasl.password: expected a valid string
mechanism: GSSAPI, username: u
  # kafka.sasl username has no effect with GSSAPI, only with PLAIN and SCRAM-SHA-256 and SCRAM-SHA-512
username: u, password: p, token_file: /t  # kafka.sasl token_file has no effect with PLAIN, only with OAUTHBEARER
mechanism: OAUTHBEARER  # kafka.sasl needs token_url or token_file or token_command
mechanism: OAUTHBEARER, token_file: /t, token_command: c  # kafka.sasl token_file and token_command exclude each other
mechanism: OAUTHBEARER, token_file: /t, scope: s  # kafka.sasl scope needs token_url
mechanism: OAUTHBEARER, token_url: 'https://u:p@a/t'
  # kafka.sasl.token_url is not a URL such as https://sso.corp/token; the login belongs in client_id and client_secret
mechanism: OAUTHBEARER, token_url: 'https://a/t', client_id: c  # kafka.sasl needs client_secret or client_secret_file
mechanism: OAUTHBEARER, token_command: "a 'b"  # kafka.sasl.token_command No closing quotation
mechanism: OAUTHBEARER, token_command: ''  # kafka.sasl.token_command names no command
mechanism: OAUTHBEARER, token_command: [a, {hunter2: 5}]  # kafka.sasl.token_command[1]: expected a valid string
"""
"""The same of `kafka.sasl`."""
HEADERS: Final = """
headers: {'Authorization: Bearer hunter2': ''}
  # sources[0].prometheus.headers has a key that is not the name of an HTTP header
header_files: {'Authorization: Bearer hunter2': '${FILE}'}
  # sources[0].prometheus.header_files has a key that is not the name of an HTTP header
header_files: {Authorization: Bearer hunter2}
  # sources[0].prometheus.header_files.Authorization: expected a file that is there
headers: {X-Id: hunter2, x-id: b}
  # sources[0].prometheus has the header x-id twice, in headers or header_files, in whatever case
headers: {X-Id: hunter2}, header_files: {X-ID: '${FILE}'}  # sources[0].prometheus has the header X-ID twice, …
headers: {authorization: hunter2}, basic_auth: {username: a, password: b}
  # sources[0].prometheus has both basic_auth and the header Authorization: give one of them
"""
"""The same of a source that is a Prometheus, which logs in as agents do."""
OTLP: Final = """
headers: 'Authorization: Bearer hunter2'  # otlp.headers is not a list name=value,name=value
headers: '=hunter2'  # otlp.headers is not a list name=value,name=value
headers: 'a=hunter2,b=c,a=d'  # otlp.headers has 'a' twice
headers: 'a=hunter2,A=d'  # otlp has the header A twice, …
headers: a=hunter2, header_files: {A: '${FILE}'}  # otlp has the header A twice, …
resource_attributes: a  # otlp.resource_attributes is not a list name=value,name=value
"""
"""The same of `otlp`."""
DISCOVERY: Final = """
kafka: {url: auto}, source: {headers: {A: b}}
  # discovery kafka.url auto would send the credentials of source to any port: name the agents' address
kafka: {url: auto}, source: {header_files: {A: '${FILE}'}}  # discovery kafka.url auto would send the credentials…
kafka: {url: auto}, source: {tls: {}}  # discovery kafka.url auto would send the credentials…
kafka: {url: auto}, source: {basic_auth: {username: a, password: b}}
  # discovery kafka.url auto would send the credentials…
kafka: {url: auto, controller_url: 'http://{host}'}
  # discovery kafka.url auto finds controllers as well: leave out controller_url
kafka: {url: 'http://a'}  # discovery.kafka.url must contain {host} or {node_id}: otherwise all nodes have one URL
kafka: {url: 'http://{hots}'}  # discovery.kafka.url may contain {host}, {node_id}, {rack}, and no other braces
kafka: {url: 'http://{host}/}'}  # discovery.kafka.url may contain {host}, {node_id}, {rack}, and no other braces
kafka: {url: 'ftp://{host}'}  # discovery.kafka.url is not a URL such as http://broker-1:8778/jolokia
kafka: {url: auto, controllers: a}  # discovery.kafka.controllers[0] expected NODE_ID@HOST, such as 100@controller-1
file_sd: {files: a, url: 'http://{port}'}
  # discovery.file_sd.url must contain {target} or {host}: otherwise all nodes have one URL
"""
"""The same of `discovery`."""


def each_in(text: str, lines: str) -> list[str]:
    """Return each of the lines as a part of a text, with its comment behind that."""
    parts = (line.partition("  # ") for line in re.split(r"\n(?!  # )", lines.strip()))
    return [text % keys.rstrip() + mark + comment for keys, mark, comment in parts]


@pytest.mark.parametrize(
    "text",
    [
        WRONG,
        *each_in("kafka: {bootstrap_servers: a:1, %s}", KAFKA),
        *each_in("kafka: {bootstrap_servers: a:1, security_protocol: SASL_SSL, sasl: {%s}}", SASL),
        *each_in("{kafka: {bootstrap_servers: a:1}, discovery: {%s}}", DISCOVERY),
        (
            "discovery: {kafka: {url: auto}}  # discovery.kafka (--discover) needs kafka (--bootstrap-servers): it "
            "asks that cluster"
        ),
        *(
            f"kafka: {{bootstrap_servers: ['{server}']}}  # kafka.bootstrap_servers[0] expected HOST:PORT, such as "
            f"broker-1:9092"
            for server in ("", "a", ":9092", "a:", "a:0", "a:65536", "a:-1", "a:1.5", "a:x", "a:1:", "9092")
        ),
        "kafka: {bootstrap_servers: []}  # kafka.bootstrap_servers names no broker",
        (
            "kafka: {bootstrap_servers: 'u:hunter2@a:1'}  # kafka.bootstrap_servers[0] must not contain a user or "
            "password; those of Kafka belong in sasl"
        ),
        (
            "sources: [{url: 'http://a:1'}, {dialect: jolokia, url: 'http://a:1'}]  # two sources are called 'a:1': "
            "give them a name"
        ),
        "sources: jolokia  # sources: expected a list",
        "otlp: {tls: {ca_file: /none}}  # otlp.tls.ca_file: expected a file that is there, got '/none'",
        "otlp: {tls: {cert_file: '${FILE}'}}  # otlp.tls give both cert_file and key_file, or neither",
        "otlp: {tls: {key_file: '${FILE}'}}  # otlp.tls give both cert_file and key_file, or neither",
        *each_in("sources: [{prometheus: {url: 'http://a', %s}}]", HEADERS),
        *each_in("otlp: {%s}", OTLP),
        f"server: {{port: {'x' * 5_000}}}  # server.port: expected a whole number, got '{'x' * 59}…",
        "a: [1, 2  # not valid YAML: expected ',' or ']'…",
        "a: 1\n\tb: 2  # not valid YAML: found character '\\t'…",
        "a: 1\n---  # not valid YAML: but found another document\nb: 2",
        "- 1  # expected keys and values, such as `key: value`",
        "text  # expected keys and values, such as `key: value`",
        "a: &a [*a]  # not valid YAML: this alias repeats too much…",
        "a: !!python/object:os.system x  # not valid YAML: could not…",
    ],
)
def test_all_problems_are_reported_with_their_lines(text: str) -> None:
    """
    Problems of form and of content are reported at once, in the order of the lines.

    Nothing hides another problem or causes a second one. No secret is repeated: neither a wrong one, nor one in a wrong
    place, nor a variable that was filled in. Names and values of any length stay short and printable.
    """
    environ = {"FILE": __file__, "SECRET": "hunter2"}
    commented, said = 0, []
    for number, line in enumerate(text.splitlines(), start=1):
        content, *comments = line.split("  # ")
        commented = number if content.strip() else commented
        said += [f"line {commented}: {comment}" for comment in comments]
    for problem, expected in zip(problems(text, **environ), said, strict=True):
        assert problem == expected or (expected.endswith("…") and problem.startswith(expected[:-1]))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("binary", "is not UTF-8 text (byte 3)"),
        ("zero", "is not valid YAML: unacceptable character"),
        ("deep", "is not valid YAML: more than 20 levels"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_by_its_name(name: str, problem: str, tmp_path: Path) -> None:
    """A wrong path, a folder, binary data and too deep a nesting are reported by the file's name."""
    (tmp_path / "binary").write_bytes(b"a: \xff")
    (tmp_path / "zero").write_bytes(b"a: \x00")
    (tmp_path / "deep").write_bytes(b"a: " + b"[" * 21 + b"]" * 21)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / name, {})
    assert str(caught.value).startswith(f"{tmp_path / name}: {problem}")


def test_wrong_flags_and_variables_are_called_by_their_names() -> None:
    """
    A variable that looks like ours but sets nothing is as wrong as an unknown key.

    An = in a URL does not end a dialect's name.
    """
    sources = ["jolokai=http://b:1", "http://u:hunter2@b1/jolokia?ttl=1"]
    flags = [Override(place=("server", "port"), value="http", origin="--port"), sources_override(sources, "--source")]
    environ = {"QUOTASCOPE_LOG__LEVEL": "loud", "QUOTASCOPE_SERVER__PROT": "1"}
    assert problems("server: {port: 1}", flags, **environ) == [
        "unknown environment variable QUOTASCOPE_SERVER__PROT; did you mean QUOTASCOPE_SERVER__PORT?",
        (
            "--source: sources[0].dialect: expected 'auto', 'jolokia', 'prometheus', 'jmx_exporter', "
            "'quotascope_rules', 'kafka_2_0_0', 'jmx_default', 'strimzi', 'confluent' or 'jmx_rules', got 'jolokai'; "
            "did you mean 'jolokia'?"
        ),
        (
            "--source: sources[1].url must not contain a user or password; those of a source belong in basic_auth or "
            "headers"
        ),
        "--port: server.port: expected a whole number, got 'http'",
        "QUOTASCOPE_LOG__LEVEL: log.level: expected 'debug', 'info', 'warning' or 'error', got 'loud'",
    ]
