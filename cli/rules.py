"""`quotascope rules`: rules files for the agents of brokers."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options, outputs
from .app import App
from .outputs import put

if TYPE_CHECKING:
    from quotascope.exporter.agent_rules import AgentConfig

rules = App("rules", "Write and check rules for the agents of brokers.")
EXAMPLES = """
Examples:

quotascope rules jmx-exporter > quotascope.yml

quotascope rules jmx-exporter --output /etc/kafka/quotascope.yml
"""
CHECK_EXAMPLES = """
Examples:

quotascope rules check /etc/kafka/jmx_exporter.yml

kubectl get configmap kafka-metrics -o yaml | quotascope rules check -

quotascope rules check kafka-2_0_0.yml --json | jq '.configurations[].facts[] | select(.shown | not)'

Exit code 0: everything is shown. 1: something is missing. 2: the file is no configuration that an agent can use.
"""
_LONGEST_BYTES: Final = 4 << 20


@rules.command(epilog=EXAMPLES)
def jmx_exporter(
    *,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; a file there is replaced.")
    ] = None,
) -> None:
    """
    Write a rules file for jmx_exporter: Kafka's quotas under quotascope's names and units, and nothing else.

    Sources need no setting for it: its names are detected.
    """
    from quotascope.exporter.rules import jmx_exporter_rules

    text = jmx_exporter_rules()
    if output is None:
        typer.echo(text, nl=False)
        return
    put(output, text)
    typer.echo(output)


@rules.command(epilog=CHECK_EXAMPLES)
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help=(
                "Configuration of jmx_exporter (YAML), also within a ConfigMap or values of a chart; - is standard "
                "input."
            ),
        ),
    ],
    *,
    json: options.Json = False,
) -> None:
    """
    Report what pages of an agent with these rules show of quotas, what they leave out and why, and the rules to add.

    Needs no broker and no agent: Kafka's quota metrics go through the rules as jmx_exporter applies them, and the page
    through the reader that reads the pages of agents.
    """
    from quotascope.exporter.agent_rules import check as check_config
    from quotascope.exporter.errors import ConfigError

    try:
        results = [check_config(config) for config in _configurations(file)]
    except ConfigError as error:
        typer.echo(f"quotascope: {error}", err=True)
        raise typer.Exit(2) from None
    if json:
        from .rules_view import as_json

        outputs.put_json(as_json(results))
    else:
        from rich.console import Console

        from .rules_view import additions, as_table

        console = Console()
        for result in results:
            console.print(as_table(result, _name(file)))
            for line in additions(result):
                typer.echo(line)
    raise typer.Exit(0 if all(result.complete for result in results) else 1)


def _configurations(file: Path) -> list[AgentConfig]:
    """Return the configurations in a file. Raises ``ConfigError``."""
    from quotascope.exporter.agent_rules import configurations
    from quotascope.exporter.errors import ConfigError
    from quotascope.quotas import text_of

    try:
        text = text_of(file, _LONGEST_BYTES)
    except OSError as error:
        advice = ": is it a configuration of jmx_exporter?" if error.errno == errno.EFBIG else ""
        raise ConfigError(_name(file), [f"cannot be read: {error.strerror}{advice}"]) from None
    except UnicodeDecodeError:
        raise ConfigError(_name(file), ["is not UTF-8 text"]) from None
    return configurations(text, _name(file))


def _name(file: Path) -> str:
    """Return the name of a file in messages."""
    from quotascope.quotas import named

    return named(file)
