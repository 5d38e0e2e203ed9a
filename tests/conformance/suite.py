"""A vectors file, and whether its vectors pass."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.clients import (
    AdminRetryRunner,
    ClientThrottleMetricsRunner,
    ClientThrottleRunner,
    SanitizeRunner,
    ShouldClientThrottleRunner,
    TelemetryNameRunner,
)
from tests.conformance.fields import Failure, Malformed, Runner, Unmet, called, read
from tests.conformance.quotas import (
    ConnectionIpQuotaRunner,
    ControllerQuotaRunner,
    QuotaManagerRunner,
    QuotaValidationRunner,
    ReaperRunner,
    ReplicationQuotaRunner,
    RequestCombinationRunner,
    RLMQuotaRunner,
    ThrottledChannelRunner,
)
from tests.conformance.statistics import (
    HistogramBinsRunner,
    RecordingLevelRunner,
    RegistryRunner,
    SensorRunner,
    StatRunner,
    ThrottleFormulaRunner,
    TokenThrottleRunner,
)

from quotascope.metrics.kafka.errors import MetricsError
from quotascope.metrics.kafka.release import KAFKA_4_4, NEWEST_RELEASE, KafkaRelease

RUNNERS: dict[str, type[Runner]] = {
    "stat": StatRunner,
    "histogram_bins": HistogramBinsRunner,
    "sensor": SensorRunner,
    "recording_level": RecordingLevelRunner,
    "registry": RegistryRunner,
    "throttle_formula": ThrottleFormulaRunner,
    "token_throttle": TokenThrottleRunner,
    "controller_quota": ControllerQuotaRunner,
    "quota_manager": QuotaManagerRunner,
    "reaper": ReaperRunner,
    "throttled_channel": ThrottledChannelRunner,
    "request_combination": RequestCombinationRunner,
    "sanitize": SanitizeRunner,
    "replication_quota": ReplicationQuotaRunner,
    "rlm_quota": RLMQuotaRunner,
    "client_throttle": ClientThrottleRunner,
    "client_throttle_metrics": ClientThrottleMetricsRunner,
    "admin_retry": AdminRetryRunner,
    "should_client_throttle": ShouldClientThrottleRunner,
    "connection_ip_quota": ConnectionIpQuotaRunner,
    "quota_validation": QuotaValidationRunner,
    "telemetry_name": TelemetryNameRunner,
}
"""The kinds that are built."""


_SINCE = "since_4_4"
ENGINE_ERRORS = (MetricsError, ArithmeticError, TypeError, ValueError)
"""What the engine may raise where a vector does not expect it to."""


@dataclass(frozen=True, slots=True)
class Vector:
    value: object

    @property
    def kind(self) -> str:
        """The vector's kind, as a text for the reader even when the vector is malformed."""
        return self._shown("kind")

    @property
    def name(self) -> str:
        return self._shown("name")

    def _shown(self, key: str) -> str:
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return value if isinstance(value, str) else f"<no {key}>"


def load(path: Path) -> list[Vector]:
    """Return the vectors of a file. Raises `Malformed` when the file is missing or has none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Malformed(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path}: not JSON: {error}") from None
    vectors = content.get("vectors") if isinstance(content, dict) else None
    if not isinstance(vectors, list):
        raise Malformed(f'{path}: an object with an array "vectors" was expected')
    return [Vector(value) for value in vectors]


def run(vector: Vector, release: KafkaRelease = NEWEST_RELEASE) -> None:
    """Run a vector as a release of Kafka answers it. Raises `Failure` unless it passes."""
    kind, config, steps = called(_parts, vector.value)
    runner = _runner(kind, config, release)
    for number, step in enumerate(steps, start=1):
        newer = read(dict[str, object], step.pop(_SINCE, {}))
        _run_step(runner, step | newer if release >= KAFKA_4_4 else step, f"step {number} ({step.get('op', '?')})")


def _parts(
    name: str,  # noqa: ARG001 - each vector has one
    kind: str,
    steps: list[dict[str, object]],
    config: dict[str, object] | None = None,
) -> tuple[str, dict[str, object], list[dict[str, object]]]:
    return kind, config or {}, steps


def _runner(kind: str, config: dict[str, object], release: KafkaRelease) -> Runner:
    if kind not in RUNNERS:
        raise Malformed(f"unknown kind {kind!r:.60}")
    origin = "clock_origin_ms"
    try:
        runner = RUNNERS[kind](release, read(int, config.get(origin, 0)))
        runner.begin({key: value for key, value in config.items() if key != origin})
    except ENGINE_ERRORS as error:
        raise Malformed(f"config: {type(error).__name__}: {error}") from error
    except Malformed as malformed:
        raise Malformed(f"config: {malformed}") from None
    return runner


def _run_step(runner: Runner, step: dict[str, object], place: str) -> None:
    """Run a step; an error says where it happened."""
    try:
        runner.run(step)
    except Failure as failure:
        raise type(failure)(f"{place}: {failure}") from failure
    except ENGINE_ERRORS as error:
        raise Unmet(f"{place}: the engine raised {type(error).__name__}: {error}") from error


def outcomes(vectors: list[Vector], release: KafkaRelease = NEWEST_RELEASE) -> Iterator[tuple[Vector, Failure | None]]:
    """Run all vectors, and return for each the reason why it fails, or None."""
    for vector in vectors:
        try:
            run(vector, release)
        except Failure as failure:
            yield vector, failure
        else:
            yield vector, None
