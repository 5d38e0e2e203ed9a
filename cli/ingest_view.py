"""The report of `quotascope ingest` on the lines that it read."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import typer

from . import outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quotascope.pipeline.ingest import IngestReport

_MOST_LEFT_OUT: Final = 10
_MOST_DETAILS: Final = 3
"""Number of details of a reason."""
_COARSE: Final = (
    "{requests:,} requests of broker {broker} have times of {unit} only, so that bursts within them are unknown: set "
    "the pattern "
    "[%d{{yyyy-MM-dd HH:mm:ss,SSS}}] %p %m (%c)%n (log4j2, Kafka 4 and later: appender.NAME.layout.pattern; Strimzi: "
    "this in "
    "spec.kafka.logging of the Kafka resource; log4j 1: log4j.appender.NAME.layout.ConversionPattern)"
)
_UNITS: Final = {10: "10 milliseconds", 100: "100 milliseconds", 1_000: "whole seconds"}


def print_report(report: IngestReport, batch: int | None = None, *, json: bool = False) -> None:
    """Print the report on standard output, a batch as one line of JSON; errors of files go to standard error."""
    from quotascope.exporter.untrusted import one_line

    if json:
        document = _document(report)
        if batch is None:
            outputs.put_json(document)
        else:
            outputs.put_json({"batch": batch, **document}, indent=None)
    else:
        known_lines = report.duplicates + report.quarantined_before
        prefix = "" if batch is None else f"batch {batch}: "
        typer.echo(
            f"{prefix}{report.read:,} lines: {report.kept:,} requests added, "
            f"{report.forwarded:,} second lines of forwarded requests, {known_lines:,} known before, "
            f"{report.repeated:,} repeated, "
            f"{report.quarantined:,} quarantined"
        )
        for line in _reasons(report):
            typer.echo(f"  {line}")
        for line in _warnings(report):
            typer.echo(f"  {line}")
    for file, why in list(report.left_out.items())[:_MOST_LEFT_OUT]:
        typer.echo(f"quotascope: {one_line(file)} was not read: {one_line(why)}", err=True)
    if len(report.left_out) > _MOST_LEFT_OUT:
        typer.echo(f"quotascope: {len(report.left_out):,} files and folders were not read", err=True)
    for file, why in report.broken.items():
        typer.echo(f"quotascope: {one_line(file)}: {one_line(why)}", err=True)
    for file, api, lines in report.unread_apis:
        typer.echo(
            f"quotascope: {one_line(file)}: none of its {lines:,} lines of {_api(api)} could be read, so that their "
            "usage is unknown, not 0",
            err=True,
        )
    sys.stdout.flush()


def _document(report: IngestReport) -> dict[str, Any]:
    """Return the report for programs."""
    return {
        "lines": report.read,
        "added": report.kept,
        "forwarded": report.forwarded,
        "known_before": report.duplicates + report.quarantined_before,
        "repeated": report.repeated,
        "quarantined": report.quarantined,
        "quarantined_by_reason": dict(report.reasons.most_common()),
        "quarantined_by_detail": [
            {"reason": reason, "detail": detail, "lines": lines}
            for (reason, detail), lines in sorted(report.details.items(), key=lambda entry: (-entry[1], entry[0]))
        ],
        "unread": [{"file": file, "api": _api(api), "lines": lines} for file, api, lines in report.unread_apis],
        "time_precision": [
            {"broker": broker, "precision_ms": precision, "requests": requests}
            for broker, (precision, requests) in report.brokers.coarse().items()
        ],
        "losses": None if report.losses is None else report.losses.values(),
        "notes": list(_warnings(report)),
        "broken": report.broken,
        "not_read": report.left_out,
    }


def _reasons(report: IngestReport) -> Iterator[str]:
    """Yield each reason with its number of lines, and below it the most frequent details."""
    from quotascope.exporter.untrusted import one_line

    for reason, count in report.reasons.most_common():
        yield f"quarantined: {count:,} {one_line(reason)}"
        details = sorted(
            ((lines, detail) for (of_reason, detail), lines in report.details.items() if of_reason == reason),
            key=lambda entry: (-entry[0], entry[1]),
        )
        for lines, detail in islice(details, _MOST_DETAILS):
            yield f"  {lines:,}: {one_line(detail)}"
        if len(details) > _MOST_DETAILS:
            yield f"  and {len(details) - _MOST_DETAILS:,} other details: --json has them"


def _warnings(report: IngestReport) -> Iterator[str]:
    """Yield sentences about times that are too coarse, and about lines that the logs lack."""
    from quotascope.pages.words import shown

    for broker, (precision, requests) in report.brokers.coarse().items():
        yield _COARSE.format(requests=requests, broker=shown(broker), unit=_UNITS[precision])
    if report.losses is not None:
        yield from report.losses.missing_notes()


def _api(number: int) -> str:
    """Return Kafka's name of an API."""
    from quotascope.metrics.kafka.protocol import ApiKey

    try:
        return ApiKey(number).name
    except ValueError:
        return f"API {number}"
