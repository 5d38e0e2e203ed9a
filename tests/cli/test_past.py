"""The address of a Prometheus server, its login and the period, as options say them."""

from __future__ import annotations

import json
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
from tests.cli.conftest import Run
from tests.servers import Handler, served

from quotascope.cli.past import PASSWORD_VARIABLE, PrometheusOptions, _period, check_exporters
from quotascope.cli.settings import configuration
from quotascope.exporter.config import Config
from quotascope.pipeline.prometheus.past import QueryRefused

URL = "http://mimir:8080/prometheus"
ASKING = [
    (*command, "--prometheus", URL, "--series", "bogus")
    for command in (("usage",), ("episodes",), ("recommend",), ("shadow", "backtest", "candidates.yaml"))
]
"""Commands that ask a Prometheus, with a wrong option."""
HOUR_S = 3_600


def test_logins_are_those_of_the_live_source(tmp_path: Path) -> None:
    """Each option of the command is a setting of a Prometheus source."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    options = PrometheusOptions(
        prometheus=URL,
        selector='{job="kafka"}',
        instance_label="pod",
        prometheus_user="monitor",
        prometheus_password_file=password,
        prometheus_header=["X-Scope-OrgID=kafka"],
        prometheus_header_file=[f"X-Token={password}"],
    )
    config = options.config(Config())
    assert (config.url, config.selector, config.instance_label) == (URL, 'job="kafka"', "pod")
    assert config.basic_auth is not None
    assert (config.basic_auth.username, config.basic_auth.password_file) == ("monitor", password)
    assert config.headers["X-Scope-OrgID"].get_secret_value() == "kafka"
    assert config.header_files == {"X-Token": password}


def test_a_password_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password is taken from the environment where no file is named."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    config = PrometheusOptions(prometheus=URL, prometheus_user="monitor").config(Config())
    assert config.basic_auth is not None
    assert config.basic_auth.password is not None
    assert config.basic_auth.password.get_secret_value() == "secret"


class VictoriaMetrics(Handler):
    """Answers any query as VictoriaMetrics answers `time()`."""

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.body()
        result = [{"metric": {}, "value": [1796099078, "1796099048.407"]}]
        answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
        self.answer(200, json.dumps(answer).encode())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("recommend --short-log", 1),
        ("cost --counters --month 2026-01 --teams teams.yaml", 1),
        ("shadow verify tight --since 2026-01-01", 2),
    ],
)
def test_the_past_of_victoria_metrics_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, expected: int
) -> None:
    """VictoriaMetrics is refused: its subqueries are evaluated at other times, so that hours would be mixed up."""
    monkeypatch.chdir(tmp_path)
    Path("teams.yaml").write_text("currency: EUR\nteams: [{team: a, clients: [{user: a}], price_per_gb_in: 1.0}]\n")
    with served(ThreadingHTTPServer(("127.0.0.1", 0), VictoriaMetrics)) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        code, output, errors = run(*command.split(), "--prometheus", address)
    assert (code, output) == (expected, "")
    assert f"{server.server_port} is VictoriaMetrics, which evaluates subqueries at other times" in errors


def test_the_login_of_the_configuration_is_used(tmp_path: Path) -> None:
    """The login of a source with the same address is used, and a selector on the command line replaces the source's."""
    file = tmp_path / "quotascope.yaml"
    file.write_text(
        f"sources: [{{prometheus: {{url: '{URL}/', selector: 'a=\"b\"', headers: {{X-Scope-OrgID: kafka}}}}}}]\n"
    )
    settings = configuration(file)
    config = PrometheusOptions(prometheus=URL).config(settings)
    assert (config.selector, [*config.headers]) == ('a="b"', ["X-Scope-OrgID"])
    assert PrometheusOptions(prometheus="http://other:9090").config(settings).headers == {}
    both = PrometheusOptions(prometheus=URL, prometheus_header=["X-Scope-OrgID=other"])
    with pytest.raises(typer.BadParameter, match=r"has headers for this server.*'mimir:8080'.*give one of them"):
        both.config(settings)


def test_options_of_no_login_replace_those_of_the_configuration(tmp_path: Path) -> None:
    """An option that is no part of a login replaces the configuration's setting, and the login stays."""
    file = tmp_path / "quotascope.yaml"
    file.write_text(
        f"sources: [{{prometheus: {{url: '{URL}', instance_label: pod, headers: {{X-Scope-OrgID: kafka}}}}}}]\n"
    )
    options = PrometheusOptions(prometheus=URL, instance_label="node", selector='{job="kafka"}')
    config = options.config(configuration(file))
    assert (config.instance_label, config.selector, [*config.headers]) == ("node", 'job="kafka"', ["X-Scope-OrgID"])


def test_a_login_joins_a_source_that_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has the selector, the options the login."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    file = tmp_path / "quotascope.yaml"
    file.write_text(f"sources: [{{prometheus: {{url: '{URL}', selector: 'job=\"kafka\"'}}}}]\n")
    config = PrometheusOptions(prometheus=URL, prometheus_user="monitor").config(configuration(file))
    assert config.basic_auth is not None
    assert (config.selector, config.basic_auth.username) == ('job="kafka"', "monitor")


TWO = f"""
sources:
- prometheus: {{url: '{URL}', name: "blue\\n", selector: 'cluster="blue"', headers: {{X-Scope-OrgID: b1ue}}}}
- prometheus: {{url: '{URL}', name: red, selector: 'cluster="red"', headers: {{X-Scope-OrgID: %s}}}}
"""


def test_several_sources_of_one_server(tmp_path: Path) -> None:
    """The selector chooses one of several sources; without one, the message names them all."""
    file = tmp_path / "quotascope.yaml"
    file.write_text(TWO % "r3d")
    settings = configuration(file)
    for selector in (None, '{cluster="green"}'):
        with pytest.raises(typer.BadParameter) as caught:
            PrometheusOptions(prometheus=URL, selector=selector).config(settings)
        message = str(caught.value)
        assert "2 sources of this address, 'blue\\n' (selector 'cluster=\"blue\"'), 'red' (selector" in message
        assert "give --selector" in message
        assert "r3d" not in message
    config = PrometheusOptions(prometheus=URL, selector='{cluster="red"}').config(settings)
    assert config.headers["X-Scope-OrgID"].get_secret_value() == "r3d"
    file.write_text(TWO % "b1ue")
    config = PrometheusOptions(prometheus=URL, selector='{cluster="green"}').config(configuration(file))
    assert (config.selector, [*config.headers]) == ('cluster="green"', ["X-Scope-OrgID"])


def test_sources_that_no_selector_tells_apart(tmp_path: Path) -> None:
    """Two sources that differ only in their login are refused, since no option says which one is meant."""
    file = tmp_path / "quotascope.yaml"
    file.write_text((TWO % "r3d").replace("blue", "red"))
    with pytest.raises(typer.BadParameter, match="leave one of them in the file"):
        PrometheusOptions(prometheus=URL, selector='{cluster="red"}').config(configuration(file))


def test_a_password_of_the_environment_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password without a user is refused unless there is another login: the server would be asked without one."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "s3cr3t")
    with pytest.raises(typer.BadParameter, match="needs --prometheus-user") as caught:
        PrometheusOptions(prometheus=URL).config(Config())
    assert (caught.value.param_hint, "s3cr3t" in str(caught.value)) == (PASSWORD_VARIABLE, False)
    bearer = PrometheusOptions(prometheus=URL, prometheus_header=["authorization=Bearer x"])
    assert [*bearer.config(Config()).headers] == ["authorization"]
    file = tmp_path / "quotascope.yaml"
    file.write_text(f"sources: [{{prometheus: {{url: '{URL}', basic_auth: {{username: a, password: b}}}}}}]\n")
    config = PrometheusOptions(prometheus=URL).config(configuration(file))
    assert config.basic_auth is not None
    assert config.basic_auth.username == "a"


def test_a_user_needs_a_password() -> None:
    """A user without a password in a file or in the environment is refused."""
    with pytest.raises(typer.BadParameter, match=f"--prometheus-password-file or {PASSWORD_VARIABLE}"):
        PrometheusOptions(prometheus=URL, prometheus_user="monitor").config(Config())


@pytest.mark.parametrize(
    ("days", "span", "expected"),
    [
        (None, (None, None), (10_000 - 14 * 24, 10_000)),
        (1.0, (None, None), (10_000 - 24, 10_000)),
        (1.0, (None, 9_000.5 * HOUR_S), (9_000 - 24, 9_000)),
        (None, (9_000.2 * HOUR_S, 9_002.9 * HOUR_S), (9_000, 9_002)),
        (None, (9_000.0 * HOUR_S, 11_000.0 * HOUR_S), (9_000, 10_000)),
    ],
)
def test_periods_are_whole_hours_up_to_the_last_full_one(
    days: float | None, span: tuple[float | None, float | None], expected: tuple[int, int]
) -> None:
    """Periods end at the last full hour, and begin as long before it as requested unless the begin is set."""
    begin, end = _period(days, 10_000.7 * HOUR_S, *span)
    assert (begin / HOUR_S, end / HOUR_S) == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("recommend",), "FOLDER, --prometheus"),
        (("recommend", "usage", "--prometheus", URL), "FOLDER, --prometheus"),
        (("usage", "--prometheus", URL, "--by-topic"), "needs a request log"),
        (("usage", "--prometheus", URL, "--days", "1", "--begin", "2026-01-01"), "--days, --begin"),
        (("episodes", "usage", "--prometheus", URL), "FOLDER, --exporter, --prometheus"),
        (("shadow", "backtest", "no-file.yaml"), "--prometheus, --samples: give one of them"),
        *((command, "auto, agents, exporter") for command in ASKING),
        (("usage", "usage", "--days", "7"), "for --days: has no effect without --prometheus"),
        (("recommend", "usage", "--series", "auto"), "for --series: has no effect without --prometheus"),
        (
            ("episodes", "--exporter", URL, "--selector", "{}", "--days", "7"),
            "for --selector, --days: has no effect without --prometheus",
        ),
        (
            ("usage", "usage", "--prometheus-user", "u", "--prometheus-header", "A=b"),
            "--prometheus-user, --prometheus-header",
        ),
        (("episodes", "usage", "--exporter-user", "u"), "for --exporter-user: has no effect without --exporter"),
        (
            ("top", "--exporter", URL, "--exporter-password-file", "f"),
            "--exporter-password-file: needs --exporter-user",
        ),
        (("recommend", "--prometheus", URL, "--prometheus-password-file", "f"), "needs --prometheus-user"),
        (("recommend", "--prometheus", URL, "--prometheus-key-file", "f"), "needs --prometheus-cert-file"),
    ],
)
def test_options_that_contradict_each_other(run: Run, arguments: tuple[str, ...], reason: str) -> None:
    """Options that contradict each other are named, and the server is not asked."""
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert reason in " ".join(errors.replace("│", " ").split())


HEADER, FILE = "--prometheus-header", "--prometheus-header-file"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((HEADER, "Authorization: Bearer s3cr3t"), f"{HEADER}: takes NAME=VALUE, and number 1 has another form"),
        ((HEADER, "Authorization: Bearer s3cr3t=="), "number 1 has another form"),
        ((HEADER, "X-Id=a", HEADER, "=s3cr3t"), "number 2 has another form"),
        ((HEADER, "X-Id="), "number 1 has another form"),
        ((HEADER, "s3cr\u00e93t=a"), "has a key that is not the name of an HTTP header"),
        ((HEADER, "X-Id=s3cr3t", HEADER, "X-Id=s3cr3t"), f"{HEADER}: 'X-Id' is there twice"),
        ((HEADER, "X-Id=s3cr3t", HEADER, "x-iD=other"), "'x-iD' is there twice"),
        ((HEADER, "X-Id=s3cr3t", FILE, "x-id=no-file"), f"{HEADER}, {FILE}: 'X-Id' is in both"),
        ((FILE, "Authorization=Bearer s3cr3t"), "Authorization: expected a file that is there"),
        ((FILE, "Authorization: Bearer s3cr3t"), f"{FILE}: takes NAME=FILE, and number 1"),
        (
            (HEADER, "Authorization=s3cr3t", "--prometheus-user", "u", "--prometheus-password-file", "f"),
            f"--prometheus-user, {HEADER}: the header Authorization is a login, too",
        ),
    ],
)
def test_wrong_headers_are_refused_and_not_repeated(run: Run, words: tuple[str, ...], reason: str) -> None:
    """A header may come once, ignoring case, and no message has a value that may be a secret."""
    code, output, errors = run("usage", "--prometheus", URL, *words)
    assert (code in {1, 2}, output) == (True, "")
    assert reason in " ".join(errors.replace("│", " ").split())
    assert "s3cr" not in errors


def test_options_of_spark_are_given_once(run: Run) -> None:
    """An option for Spark is refused where it has another form or comes twice, and no message has its value."""
    for option, reason in (
        ("kafka.sasl.jaas.config: s3cr3t", "number 2 has another form"),
        ("=s3cr3t", "number 2 has another form"),
        ("Kafka.Sasl.Jaas.Config=s3cr3t", "is there twice"),
    ):
        words = ("--option", "kafka.sasl.jaas.config=x", "--option", option)
        code, output, errors = run("ingest", "kafka://b:9092/log", "--into", "usage", *words)
        assert (code, output) == (2, "")
        assert reason in " ".join(errors.replace("│", " ").split())
        assert "s3cr3t" not in errors


@pytest.mark.parametrize("target", [{"instance": "q:9749"}, {}])
@pytest.mark.parametrize("other", [{"env": "test"}, {}])
def test_exporters_of_two_clusters_are_refused(target: dict[str, str], other: dict[str, str]) -> None:
    """Exporters whose targets have the same instance, or none, are refused where their environments differ."""
    config = PrometheusOptions(prometheus=URL).config(Config())
    exporters = [{**target, "env": "prod"}, {**target, **other}]
    for in_order in (exporters, exporters[::-1]):
        with pytest.raises(QueryRefused, match="mimir:8080: it has series of several clusters"):
            check_exporters(config)(in_order)
    check_exporters(config)(exporters[:1] * 2)
