"""Starts are quick: a command imports what it needs, which is counted here."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
before = set(sys.modules)
{code}
modules = set(sys.modules) - before
print(*sorted(modules), file=sys.__stdout__)
"""
COMMAND = """
sys.argv = ["quotascope", *{arguments!r}]
from quotascope.cli.main import main
try:
    main()
except SystemExit:
    pass
print()
"""
NO_EXPORTER = "http://127.0.0.1:1"
TERMINAL = {"rich", "typer"}
CLIENT = {*TERMINAL, "aiohttp", "numpy", "orjson", "pydantic", "structlog", "yaml"}
SERVER = {"prometheus_client", "bcrypt"}
LIBRARIES = {
    *CLIENT, *SERVER, "confluent_kafka", "cryptography", "deltalake", "jinja2", "kafka",
    "msgspec", "numba", "opentelemetry", "pyarrow", "pyspark",
}  # fmt: skip


def imported(code: str) -> list[str]:
    """Return the modules that code imports."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    return run.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    ("code", "max_modules", "libraries"),
    [
        ("import quotascope.metrics.catalog", 24, set()),
        (COMMAND.format(arguments=["--help"]), 12, {"typer"}),
        (COMMAND.format(arguments=["status", "--exporter", NO_EXPORTER]), 84, {*TERMINAL, "numpy", "pydantic"}),
        (
            COMMAND.format(arguments=["serve", "--source", NO_EXPORTER, "--address", "192.0.2.1"]),
            240,
            CLIENT | SERVER,
        ),
        ("from quotascope.spark_listener import attach", 90, {"orjson", "prometheus_client"}),
    ],
    ids=["catalog", "help", "status", "serve", "spark-driver"],
)
def test_what_a_start_imports(code: str, max_modules: int, libraries: set[str]) -> None:
    """A start imports a limited number of quotascope's modules, and no library that it does not need."""
    modules = imported(code)
    assert len([name for name in modules if name.startswith("quotascope")]) <= max_modules
    assert {name for name in modules if name in LIBRARIES} <= libraries


SLOW = {"asyncio", "hashlib", "secrets", "ssl"}
"""Modules of the standard library that take a tenth of a second together."""


@pytest.mark.parametrize("code", ["import quotascope.metrics.catalog", "import quotascope.cli.main"])
def test_a_start_is_without_slow_modules(code: str) -> None:
    """The catalog, and the command line before a command runs, import no slow module of the standard library."""
    assert SLOW.isdisjoint(imported(code))


COMPLETED = """
import os, sys
os.environ.update(_QUOTASCOPE_COMPLETE="complete_bash", COMP_WORDS="quotascope quotas {words}", COMP_CWORD="3")
from quotascope.cli.main import main
try:
    main()
except SystemExit:
    pass
print()
print(*sorted({{"pydantic", "rich.console", "aiohttp", "kafka", "structlog"}} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("set prod", ["producer_byte_rate="]),
        ("set con", ["consumer_byte_rate=", "controller_mutation_rate=", "connection_creation_rate="]),
        ("remove req", ["request_percentage"]),
        ("set x", []),
        ("set --jso", ["--json"]),
    ],
)
def test_a_word_is_completed_without_large_libraries(words: str, completed: list[str]) -> None:
    """Completion offers the keys of quotas without importing pydantic or rich."""
    command = [sys.executable, "-c", COMPLETED.format(words=words)]
    *offered, libraries = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [word for word in offered if word] == completed
    assert libraries == ""
