"""The address of a Prometheus server, its login and the period, as options say them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.conftest import Run

from quotascope.cli.past import PASSWORD_VARIABLE, PrometheusOptions, _period
from quotascope.cli.settings import configuration
from quotascope.exporter.config import Config

URL = "http://mimir:8080/prometheus"
HOUR_S = 3_600


def test_logins_are_those_of_the_live_source(tmp_path: Path) -> None:
    """Each option is a setting of a Prometheus source."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    options = PrometheusOptions(
        prometheus=URL,
        selector='{job="kafka"}',
        instance_label="pod",
        prometheus_user="monitor",
        prometheus_password_file=password,
        prometheus_header=["X-Scope-OrgID=kafka"],
        prometheus_header_file=[f"Authorization={password}"],
    )
    config = options.config(Config())
    assert (config.url, config.selector, config.instance_label) == (URL, 'job="kafka"', "pod")
    assert config.basic_auth is not None
    assert (config.basic_auth.username, config.basic_auth.password_file) == ("monitor", password)
    assert config.headers["X-Scope-OrgID"].get_secret_value() == "kafka"
    assert config.header_files == {"Authorization": password}


def test_a_password_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be in a file."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    config = PrometheusOptions(prometheus=URL, prometheus_user="monitor").config(Config())
    assert config.basic_auth is not None
    assert config.basic_auth.password is not None
    assert config.basic_auth.password.get_secret_value() == "secret"


def test_the_login_of_the_configuration_is_used(tmp_path: Path) -> None:
    """A source of this address has it, and a selector on the command line replaces its own."""
    file = tmp_path / "quotascope.yaml"
    file.write_text(
        f"sources: [{{prometheus: {{url: '{URL}/', selector: 'a=\"b\"', headers: {{X-Scope-OrgID: kafka}}}}}}]\n"
    )
    settings = configuration(file)
    config = PrometheusOptions(prometheus=URL).config(settings)
    assert (config.selector, [*config.headers]) == ('a="b"', ["X-Scope-OrgID"])
    assert PrometheusOptions(prometheus="http://other:9090").config(settings).headers == {}
    both = PrometheusOptions(prometheus=URL, prometheus_user="monitor")
    with pytest.raises(typer.BadParameter, match="give one of them"):
        both.config(settings)


@pytest.mark.parametrize(
    ("options", "span", "expected"),
    [
        ({}, (None, None), (10_000 - 14 * 24, 10_000)),
        ({"days": 1.0}, (None, None), (10_000 - 24, 10_000)),
        ({"days": 1.0}, (None, 9_000.5 * HOUR_S), (9_000 - 24, 9_000)),
        ({}, (9_000.2 * HOUR_S, 9_002.9 * HOUR_S), (9_000, 9_002)),
        ({}, (9_000.0 * HOUR_S, 11_000.0 * HOUR_S), (9_000, 10_000)),
    ],
)
def test_periods_are_whole_hours_up_to_the_last_full_one(
    options: dict[str, Any], span: tuple[float | None, float | None], expected: tuple[int, int]
) -> None:
    """The begin counts from the end, unless it is given."""
    begin, end = _period(PrometheusOptions(prometheus=URL, **options), 10_000.7 * HOUR_S, *span)
    assert (begin / HOUR_S, end / HOUR_S) == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("recommend",), "FOLDER, --prometheus"),
        (("recommend", "usage", "--prometheus", URL), "FOLDER, --prometheus"),
        (("usage", "--prometheus", URL, "--by-topic"), "needs a request log"),
        (("usage", "--prometheus", URL, "--days", "1", "--begin", "2026-01-01"), "--days, --begin"),
        (("episodes", "usage", "--prometheus", URL), "FOLDER, --exporter, --prometheus"),
        (("recommend", "--prometheus", URL, "--prometheus-header", "secret"), "takes NAME=VALUE"),
        (("recommend", "--prometheus", URL, "--series", "all"), "auto, agents, exporter"),
    ],
)
def test_options_that_contradict_each_other(run: Run, arguments: tuple[str, ...], reason: str) -> None:
    """Nothing is asked, and the message names them."""
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert reason in " ".join(errors.replace("│", " ").split())
