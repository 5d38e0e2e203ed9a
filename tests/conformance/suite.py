"""A vectors file, and whether its vectors pass."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.conformance.clients import (
    AdminRetryRunner,
    ClientThrottleMetricsRunner,
    ClientThrottleRunner,
    SanitizeRunner,
    ShouldClientThrottleRunner,
    TelemetryNameRunner,
)
from tests.conformance.fields import Failure, Fields, Malformed, Runner, Unmet
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

from quotascope.metrics import KAFKA_4_4, NEWEST_RELEASE, KafkaRelease, MetricsError

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
    """One element of a file, as it stands there."""

    value: object

    @property
    def kind(self) -> str:
        """Its kind, for the reader; anything at all when the vector is malformed."""
        return self._shown("kind")

    @property
    def name(self) -> str:
        """Its name, for the reader."""
        return self._shown("name")

    def _shown(self, key: str) -> str:
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return value if isinstance(value, str) else f"<no {key}>"


def load(path: Path) -> list[Vector]:
    """The vectors of a file. Raises `Malformed` when there is no such file or it holds none."""
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
    fields = Fields(vector.value)
    fields.text("name")
    kind, config = fields.text("kind"), fields.fields("config", {})
    steps = fields.several("steps", partial(_step_of, release))
    fields.done()
    runner = _runner(kind, config, release)
    for number, step in enumerate(steps, start=1):
        _run_step(runner, step, f"step {number}")


def _step_of(release: KafkaRelease, value: object) -> Fields:
    """The step as it is in a release: `since_4_4` holds what differs there."""
    if isinstance(value, dict) and isinstance(value.get(_SINCE), dict):
        newer = value[_SINCE] if release >= KAFKA_4_4 else {}
        value = {key: part for key, part in value.items() if key != _SINCE} | newer
    return Fields(value)


def _runner(kind: str, config: Fields, release: KafkaRelease) -> Runner:
    if kind not in RUNNERS:
        raise Malformed(f"unknown kind {kind!r:.60}")
    try:
        runner = RUNNERS[kind](config, release)
        config.done()
    except ENGINE_ERRORS as error:
        raise Malformed(f"config: {type(error).__name__}: {error}") from error
    except Malformed as malformed:
        raise Malformed(f"config: {malformed}") from None
    return runner


def _run_step(runner: Runner, step: Fields, place: str) -> None:
    """Run a step; what it raises says where it happened."""
    try:
        runner.run(step)
    except Failure as failure:
        raise type(failure)(f"{place} ({step.raw('op', '?')}): {failure}") from failure
    except ENGINE_ERRORS as error:
        what = f"{type(error).__name__}: {error}"
        raise Unmet(f"{place} ({step.raw('op', '?')}): the engine raised {what}") from error


def outcomes(vectors: list[Vector], release: KafkaRelease = NEWEST_RELEASE) -> Iterator[tuple[Vector, Failure | None]]:
    """Run all vectors; each with why it does not pass, None if it does."""
    for vector in vectors:
        try:
            run(vector, release)
        except Failure as failure:
            yield vector, failure
        else:
            yield vector, None
