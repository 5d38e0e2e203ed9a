"""Names in expressions: a real Prometheus finds them with Grafana's formats of variables, in all ways to quote them."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.dashboards.provision import SOURCES
from tests.dashboards.stored import NOW, started
from tests.integration import web
from tests.integration.prometheus import Prometheus
from tools.demo_stack import fill

from quotascope.dashboards.variables import backtick_note, exactly_or_none, one_of

pytestmark = pytest.mark.real

TICK: Final = "a`b"
NAMES: Final = (
    "",
    "alice",
    "a-z",
    "-5",
    "Z-a",
    "[^",
    "CN=a, O=b",
    'a"b',
    "a'b",
    "a\\b",
    "a\nb",
    "{$x}",
    "a.b|c*[d]",
    "100%",
    "é😀",
    TICK,
)
QUOTED: Final = {"raw string": "`{}`", "double quotes": '"{}"', "single quotes": "'{}'", "its own quotes": "{}"}
"""The strings that PromQL has, and none for a format that quotes."""


NOTE: Final = backtick_note("user", "client_id")


@pytest.fixture(scope="module")
def of_grafana(
    node: str, grafana_code: Path, named: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Run Grafana's code on each name: its text in each format, and the options of the note's variable."""
    folder = tmp_path_factory.mktemp("formats")
    shutil.copy(SOURCES / "formats.cjs", folder)
    (folder / "node_modules").symlink_to(grafana_code / "node_modules")
    query = NOTE["query"].removeprefix("query_result(").removesuffix(")")
    (answer,) = named.get("query", query=query, time=f"{NOW}")["result"]
    labels = ",".join(f'{label}="{value}"' for label, value in answer["metric"].items())
    texts = [f"{{{labels}}} {answer['value'][1]} {NOW}000"]  # as Grafana's data source writes it
    done = subprocess.run(
        [node, "--preserve-symlinks", "--preserve-symlinks-main", folder / "formats.cjs"],
        input=json.dumps({"names": NAMES, "regex": NOTE["regex"], "texts": texts}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout)
    return output


@pytest.fixture(scope="module")
def formatted(of_grafana: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The text of each name by format."""
    return {
        name: dict(zip(NAMES, formatted_names, strict=True)) for name, formatted_names in of_grafana["formats"].items()
    }


def test_the_heading_says_why_a_name_with_a_backtick_has_no_panels(of_grafana: dict[str, Any]) -> None:
    """The note has a text for a name with a backtick only."""
    for name, chosen in zip(NAMES, of_grafana["chosen"], strict=True):
        if name == TICK:
            assert chosen == [
                (
                    ": Grafana cannot ask for a name with a backtick; the page /entity of the exporter and quotascope "
                    "explain can"
                )
            ]
        else:
            assert chosen == [], name


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus with a series for each name, and one without a name."""
    folder = tmp_path_factory.mktemp("named")
    escaped = [name.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for name in NAMES if name]
    lines = [f'named{{user="{name}"}} 1 {NOW}\n' for name in escaped]
    fill(folder, iter([*lines, f"named 1 {NOW}\n", "# EOF\n"]))
    with started(folder) as prometheus:
        yield prometheus


def found(prometheus: Prometheus, matcher: str) -> set[str] | None:
    """The names of the series that match, empty for none; None where the query is refused."""
    query = urllib.parse.urlencode({"query": f"named{{{matcher}}}", "time": NOW})
    answer = web.ask(f"http://{prometheus.address}/api/v1/query?{query}")
    assert answer.status in {200, 400}, answer.text
    if answer.status == 400:
        return None
    return {series["metric"].get("user", "") for series in json.loads(answer.body)["data"]["result"]}


def test_the_boards_find_every_name_but_one_with_a_backtick(
    formatted: dict[str, dict[str, str]], named: Prometheus
) -> None:
    """Boards find each name but one with a backtick, alone or with the series without a name."""
    for matcher, besides in ((one_of("user"), set[str]()), (exactly_or_none("user"), {""})):
        for name in filter(None, NAMES):
            filled = matcher.replace("${user:regex}", formatted["regex"][name])
            assert found(named, filled) == (None if name == TICK else {name} | besides), name


def test_no_format_of_grafana_fits_every_name(formatted: dict[str, dict[str, str]], named: Prometheus) -> None:
    """
    No format finds every name, as a regular expression or not, in any way to quote it.

    Formats that find a name with a backtick fail with quotes, a backslash, a line break or a percent sign, which are
    more frequent. A format that finds all names would be the one for the dashboards.
    """
    fitting = {}
    for format_, texts in formatted.items():
        for quotes, pattern in QUOTED.items():
            for operator in ("=", "=~"):
                right = {
                    name
                    for name in NAMES
                    if name and found(named, f"user{operator}{pattern.format(texts[name])}") == {name}
                }
                fitting[format_, quotes, operator] = {*NAMES} - right - {""}
    assert min(map(len, fitting.values())) == 1
    assert fitting["regex", "raw string", "=~"] == {TICK}
    with_tick = [missing for missing in fitting.values() if TICK not in missing]
    assert with_tick
    assert all(with_tick), "a format that fits every name"
