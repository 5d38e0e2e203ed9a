"""
Times a push of 100,000 points over OTLP, ours beside the SDK's own way, in one run: `python -m benchmarks otlp`.

The SDK's way are observable gauges whose callbacks read the snapshot, a reader that collects them, and its exporter:
once with its limit of attribute sets raised, and once as it is, when most points never arrive. Both send over HTTP,
compressed or not, to a receiver in another process that reads and forgets. In each round a tenth of the values change
and a hundredth of the entities, and all take their turn. Times are CPU times of this process: what else runs on the
machine matters less. Nothing here is a test.
"""

import argparse
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from benchmarks.clusters import Cluster
from benchmarks.collector import series_of
from benchmarks.timing import cpu_timed, in_turns, ratios, spread
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import View as SdkView
from rich.console import Console
from rich.table import Table

from quotascope.exporter.config import OtlpProtocol
from quotascope.exporter.exposition.rows import Exposed, label_names
from quotascope.exporter.otlp.encoding import Encoder, resource_of
from quotascope.exporter.otlp.push import OtlpReceiver, Starts
from quotascope.exporter.otlp.sender import Sender
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.catalog import Family, families
from quotascope.metrics.catalog.otel_names import otel_name, ucum

POINTS: Final = 100_000
NOW: Final = 1_795_251_781.0
WARM_UP: Final = 1
"""Rounds before any counts."""
RESOURCE: Final = resource_of("http://127.0.0.1:9749", None, {})


class Receiver(BaseHTTPRequestHandler):
    """Reads a request and takes it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer success."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Counting(OTLPMetricExporter):
    """The SDK's exporter, which counts the points that are left."""

    points = 0

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Count and send."""
        self.points = sum(
            len(metric.data.data_points)
            for resource in metrics_data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )
        return super().export(metrics_data, timeout_millis, **kwargs)


class Plain:
    """
    The SDK's own way.

    Args:
        url: The receiver.
        gzip: Whether requests are compressed.
        limit: Attribute sets of an instrument; None for the SDK's own limit.

    """

    def __init__(self, url: str, *, gzip: bool, limit: int | None) -> None:
        coding = Compression.Gzip if gzip else Compression.NoCompression
        self._exporter = Counting(endpoint=url, compression=coding, timeout=120)
        self._reader = PeriodicExportingMetricReader(self._exporter, export_interval_millis=math.inf)
        views = [SdkView(instrument_name="*", aggregation_cardinality_limit=limit)]
        provider = MeterProvider([self._reader], resource=RESOURCE, views=views if limit else ())
        meter = provider.get_meter("quotascope")
        for family in families():
            meter.create_observable_gauge(otel_name(family), [self._callback(family)], ucum(family), family.help)
        self._view: Exposed | None = None

    def push(self, snapshot: Snapshot) -> int:
        """Push, and return how many points were left to send."""
        self._view = Exposed(snapshot, NOW)
        self._reader.collect()
        return self._exporter.points

    def _callback(self, family: Family) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            if self._view is None:
                return
            names = label_names(family, self._view.snapshot)
            for labels, value in series_of(family, self._view):
                yield Observation(value, dict(zip(names, labels, strict=True)))

        return observe


class Ours:
    """
    Encoding and push of the exporter.

    Args:
        url: The receiver.
        gzip: Whether requests are compressed.

    """

    def __init__(self, url: str, *, gzip: bool) -> None:
        target = OtlpReceiver(protocol=OtlpProtocol.HTTP, endpoint=url, gzip=gzip)
        self._sender = Sender(target, Encoder(RESOURCE, None, 3_000_000, Starts(1)))

    def push(self, snapshot: Snapshot) -> int:
        """Push, and return how many points were sent."""
        report = self._sender.send(snapshot, NOW)
        assert not report.reason, report.reason
        return report.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """CPU seconds of the SDK's way and of ours, round by round, and points that arrived."""

    name: str
    theirs: Sequence[float]
    ours: Sequence[float]
    arrived: int
    sent: int


def compare(url: str, name: str, rounds: int, *, gzip: bool, raised: bool) -> Result:
    """Let both push a cluster that changes."""
    cluster = Cluster(POINTS)
    plain = Plain(url, gzip=gzip, limit=10 * POINTS if raised else None)
    ours = Ours(url, gzip=gzip)
    snapshot = cluster.snapshot()

    def change(_: int) -> None:
        nonlocal snapshot
        cluster.step(0.1, 0.01)
        snapshot = cluster.snapshot()

    sides = {
        "theirs": lambda: cpu_timed(lambda: plain.push(snapshot)),
        "ours": lambda: cpu_timed(lambda: ours.push(snapshot)),
    }
    figures = in_turns(sides, rounds, warm_up=WARM_UP, title=name, prepare=change)
    theirs, mine = figures["theirs"], figures["ours"]
    return Result(
        name=name,
        theirs=[seconds for seconds, _ in theirs],
        ours=[seconds for seconds, _ in mine],
        arrived=theirs[-1][1],
        sent=mine[-1][1],
    )


def table(results: Sequence[Result]) -> Table:
    """Return the comparisons as people read them."""
    result_table = Table(title="One push: CPU ms, points, and times faster")
    result_table.add_column("")
    for heading in ("SDK", "ours", "its points", "ours", "times faster: min / median / max"):
        result_table.add_column(heading, justify="right")
    for result in results:
        result_table.add_row(
            result.name,
            f"{statistics.median(result.theirs) * 1e3:.0f}",
            f"{statistics.median(result.ours) * 1e3:.0f}",
            f"{result.arrived:,}",
            f"{result.sent:,}",
            spread(ratios(result.theirs, result.ours), ".1f"),
        )
    return result_table


def serve() -> None:
    """Be the receiver: print the port, and take whatever comes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


def main(options: argparse.Namespace) -> int:
    """Print the table."""
    if options.serve:
        serve()
    command = [sys.executable, "-m", "benchmarks", "otlp", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        url = f"http://127.0.0.1:{receiver.stdout.readline().strip()}/v1/metrics"
        rounds = options.rounds
        try:
            results = [
                compare(url, "limit raised, gzip", rounds, gzip=True, raised=True),
                compare(url, "limit raised, plain", rounds, gzip=False, raised=True),
                compare(url, "as it is, gzip", rounds, gzip=True, raised=False),
            ]
        finally:
            receiver.terminate()
    Console().print(table(results))
    return 0
