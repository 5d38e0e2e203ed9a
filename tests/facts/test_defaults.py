"""
Which numbers hold where a program or a configuration says nothing: written down here, read from the sources.

What counts begins at 0, so only other numbers are named. Those of Kafka are its own: `quota.window.num` and
`controller.quota.window.num` 11 of 1 s each, `metrics.num.samples` 2 of 30 s, `default.api.timeout.ms` 60,000. A
default that changes is a change that is decided, and written down.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = (
    "alerts", "cli", "clients", "dashboards", "demo", "exporter", "metrics", "pages", "pipeline", "quotas",
    "spark_listener",
)  # fmt: skip
_NUMBERS: Final = """
cli/cost.py cost(top) 20
cli/history.py clean(older_than) 24
cli/ingest.py ingest(shards) 16
cli/outputs.py put_json(indent) 2
cli/quotas/change.py remove(top) 20
cli/quotas/change.py set_(top) 20
cli/recommend.py recommend(headroom) 20.0
cli/recommend.py recommend(share) 1.0
cli/request_topic.py request_topic(wait_seconds) 60
cli/shadow.py status(top) 10
cli/shadow.py stream(shards) 16
cli/shadow.py verify(tolerance) 10.0
cli/status.py status(top) 10
cli/usage.py usage(top) 20
clients/accounting/account.py __init__(most_clients) 1000
clients/security.py Connection.timeout_seconds 10.0
clients/throttling/mutation.py RetryOptions.timeout_ms 60000
dashboards/columns.py number(width) 120
demo/cast.py CreateTopics.version 7
demo/cast.py Rhythm.jitter 0.1
demo/cast.py Role.connections 1
exporter/agent_rules/configuration.py Rule.factor 1.0
exporter/api/handlers.py _json(status) 200
exporter/collection/collection.py __init__(max_age_seconds) 1.0
exporter/collection/collection.py __init__(patience_seconds) 9.0
exporter/limits/model.py NodeSettings.controller_quota_samples 11
exporter/limits/model.py NodeSettings.controller_quota_window_seconds 1.0
exporter/limits/model.py NodeSettings.quota_samples 11
exporter/limits/model.py NodeSettings.quota_window_seconds 1.0
exporter/limits/refresh.py __init__(interval_seconds) 30.0
exporter/limits/refresh.py __init__(timeout_seconds) 30.0
exporter/logs.py __init__(most_characters) 1 << 22
exporter/mapping.py Attribute.divisor 1.0
exporter/mapping.py _of_entities(divisor) 1.0
exporter/mapping.py _of_node(divisor) 1.0
exporter/otlp/push.py OtlpReceiver.timeout_seconds 10.0
exporter/shadow/evaluation.py __init__(max_entities) 100
exporter/sources/lines.py _Recipe.factor 1.0
exporter/sources/shortening.py _lose(count) 1
exporter/sources/source.py __init__(timeout_seconds) 60.0
exporter/sources/peer.py HttpTarget.timeout_seconds 60.0
exporter/web/connection.py ServerLimits.body_bytes 1048576
exporter/web/connection.py ServerLimits.body_seconds 2.0
exporter/web/connection.py ServerLimits.connections 512
exporter/web/connection.py ServerLimits.handshake_seconds 10.0
exporter/web/connection.py ServerLimits.head_seconds 10.0
exporter/web/connection.py ServerLimits.headers 64
exporter/web/connection.py ServerLimits.idle_seconds 330.0
exporter/web/connection.py ServerLimits.line_bytes 8190
exporter/web/connection.py ServerLimits.requests 40
exporter/web/connection.py ServerLimits.taking_seconds 60.0
exporter/web/connection.py handle_error(status) 500
metrics/engine/config.py __init__(samples) 2
metrics/engine/config.py __init__(time_window_ms) 30000
metrics/kafka/windows.py WindowConfig.samples 11
metrics/kafka/windows.py WindowConfig.window_seconds 1
pages/charts.py grid_map(every) 1
pages/charts.py round_seconds(max_steps) 8
pages/charts.py round_times(max_steps) 8
pages/charts.py round_values(max_steps) 6
pages/words.py shown(max_length) 60
pages/report.py Chart.level 2
pages/report.py Lines.level 2
pages/report.py Rows.level 2
pipeline/episodes.py episodes_in(end_ms) 4611686018427387904
pipeline/history/store.py clean(older_than_hours) 24
pipeline/ingest/local.py read(size) -1
pipeline/prometheus/promql.py Samples.factor 1.0
pipeline/recommend/policy.py Policy.headroom 0.2
pipeline/recommend/policy.py Policy.share 0.01
pipeline/replay/compiled.py _Way.least_work 200000
pipeline/replay/plan.py ReplaySettings.cells_at_once 262144
pipeline/replay/plan.py ReplaySettings.drain_ms 3600000
pipeline/replay/plan.py ReplaySettings.rows_at_once 1048576
pipeline/request_log/messages.py FetchRequest.replica_id -1
pipeline/request_log/messages.py ProduceRequest.acks -1
pipeline/request_log/messages.py ReplicaState.replica_id -1
pipeline/table/kept.py changed(compared_version) -1
pipeline/table/log.py _compare(compared_version) -1
pipeline/table/storage.py TableLayout.shards 1
pipeline/table/table.py clean(older_than_hours) 24
spark_listener/job/queries.py __init__(max_queries) 1000
spark_listener/listener.py __init__(interval_seconds) 1.0
"""
"""File, field or parameter, number."""


def _number(node: ast.expr | None) -> float | None:
    """Return the value of a number, also of one that is written as a sum or a shift."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _number(operand)
            return None if inner is None else -inner
        case ast.BinOp(op=ast.LShift(), left=left, right=right):
            high, low = _number(left), _number(right)
            return None if high is None or low is None else high * 2**low
        case _:
            return None


def _defaults(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Fields of a class, and parameters of a function."""
    match node:
        case ast.ClassDef(name=name, body=body):
            for statement in body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield f"{name}.{statement.target.id}", statement.value
        case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
            named = [*args.posonlyargs, *args.args]
            given = [*zip(named[::-1], args.defaults[::-1], strict=False)]
            for parameter, value in (*given, *zip(args.kwonlyargs, args.kw_defaults, strict=True)):
                yield f"{name}({parameter.arg})", value


def found() -> dict[str, float]:
    """Return all numbers but 0 of the product, by file and name."""
    return {
        f"{path.relative_to(ROOT)} {name}": number
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name, value in _defaults(node)
        if (number := _number(value))
    }


def test_numbers_that_hold_where_nothing_is_said() -> None:
    """Each default number is as decided, and no other count begins at anything but 0."""
    rows = (line.split(maxsplit=2) for line in _NUMBERS.strip().splitlines())
    expected = {f"{path} {name}": _number(ast.parse(text, mode="eval").body) for path, name, text in rows}
    assert found() == expected
