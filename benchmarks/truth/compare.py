"""Limits and throttled clients by a recorded Prometheus, beside those by the request log of the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from unittest.mock import patch

from benchmarks.output import say
from benchmarks.truth.record import AGENTS, INTERVALS, Recording, client_of, job_of
from tests.integration.backfilled import HOUR_S
from tests.integration.eventually import eventually
from tests.integration.prometheus import Prometheus
from tests.pipeline.prometheus.loads import LOADS

from quotascope.cli.past import PrometheusOptions, open_past
from quotascope.exporter.config import Config
from quotascope.exporter.sources.prometheus_api import PrometheusApi
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.prometheus.advice import advise as advise_by_samples
from quotascope.pipeline.prometheus.backtest import backtest
from quotascope.pipeline.prometheus.evidence import Sight
from quotascope.pipeline.prometheus.past import Past
from quotascope.pipeline.recommend.policy import Policy, RuleShape
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.recommend import advise as advise_by_log
from quotascope.pipeline.runs.whatif import what_if
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

NEAR: Final = 0.1
"""Greatest difference of a limit from the log's, as a ratio of it, that counts as the same."""
_OFTEN: Final = 0.01
"""Throttled share from which on a client counts as throttled."""
_FACTORS: Final = (0.5, 0.8, 1.3, 2.0)
"""Limits of the candidates, as parts of the lowest limit that the log gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The lowest limit of a client by the samples of one agent."""

    agent: str
    every_s: int
    client: str
    ratio: float
    """Part of the log's limit; 0 if it is unknown."""
    sight: Sight

    @property
    def is_marked(self) -> bool:
        """True if the report says that scrapes may have missed some of the load."""
        return self.sight is not Sight.WHOLE

    @property
    def is_near(self) -> bool:
        """True if it is the log's limit, within a tenth."""
        return abs(self.ratio - 1) <= NEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a candidate throttles a client often, by samples and by a replay of the log."""

    agent: str
    every_s: int
    candidate: str
    client: str
    by_samples: bool
    by_replay: bool
    is_marked: bool


def compare(recording: Recording) -> int:
    """Print limits and throttled clients by interval; return 1 if one that is not marked is wrong, else 0."""
    history = _history(recording)
    needs = _needs(history)
    candidates = [_candidate(needs, factor) for factor in _FACTORS]
    replayed = _replayed(history, candidates)
    limits: list[Limit] = []
    verdicts: list[Verdict] = []
    with _prometheus(recording) as address:
        for agent in AGENTS:
            for every_s in INTERVALS:
                with _past(recording, address, job_of(agent, every_s)) as past:
                    limits.extend(_limits(past, agent, every_s, needs))
                    verdicts.extend(_verdicts(past, agent, every_s, candidates, replayed))
    _show_limits(recording, limits)
    _show_verdicts(verdicts)
    wrong = [one for one in limits if not one.is_near and not one.is_marked]
    differing = [one for one in verdicts if one.by_samples is not one.by_replay and not one.is_marked]
    for limit in wrong:
        say(f"not marked: {limit.client}, {limit.agent} every {limit.every_s} s: {limit.ratio:.2f}")
    for verdict in differing:
        by_samples = "throttled" if verdict.by_samples else "not throttled"
        say(
            f"not marked: {verdict.client}, {verdict.agent} every {verdict.every_s} s, {verdict.candidate}: {by_samples}"
        )
    return 1 if wrong or differing else 0


def _history(recording: Recording) -> str:
    """Return the usage history of the request log, which is made once."""
    folder = recording.folder / "usage"
    if not folder.exists():
        report = ingest_logs([str(recording.log)], str(folder), IngestOptions(broker="1"))
        say(f"{report.read:,} lines of the request log were read")
    return str(folder)


def _needs(history: str) -> Mapping[str, float]:
    """Return the lowest limit of each client by the log, in bytes/s."""
    policy = Policy(shape=RuleShape.CLIENT, kinds=[QuotaType.PRODUCE], short_log=True)
    needs = {one.names[1]: one.lowest for one in advise_by_log(history, policy).recommended}
    return {name: lowest for name, lowest in needs.items() if name is not None}


def _candidate(needs: Mapping[str, float], factor: float) -> Candidate:
    key = QuotaType.PRODUCE.quota_key
    quotas = QuotaSet({QuotaEntity(client_id=client): {key: need * factor} for client, need in needs.items()})
    return Candidate(name=f"{factor:g} x the lowest limit", quotas=quotas)


def _replayed(history: str, candidates: Sequence[Candidate]) -> Mapping[tuple[str, str], float]:
    """Return the throttled share of each candidate and client by a replay of the log."""
    rows = what_if(history, candidates, Mode.OPEN_LOOP).results.to_pylist()
    return {(row["candidate"], row["client_id"]): row["throttled_share"] for row in rows if row["broker"] is None}


@contextmanager
def _prometheus(recording: Recording) -> Iterator[str]:
    """Yield the address of a Prometheus that has the recorded samples, and scrapes nothing."""
    folder = recording.data.parent
    prometheus = Prometheus(folder, {"global": {}}, "--storage.tsdb.retention.time=10y")
    try:
        eventually(lambda: prometheus.query("vector(1)"), seconds=60)
        yield f"http://{prometheus.address}"
    finally:
        prometheus.child.end()


@contextmanager
def _past(recording: Recording, address: str, job: str) -> Iterator[Past]:
    """Yield the past of a job, in the whole hours of the recording, even if the last is not over yet."""
    end = recording.end // HOUR_S * HOUR_S + HOUR_S
    span = (recording.begin, end)

    async def after_it(_api: PrometheusApi) -> float:
        return end + 1

    chosen = PrometheusOptions(prometheus=address, selector=f'{{job="{job}"}}')
    with patch.object(PrometheusApi, "now", after_it), open_past(chosen, Config(), span) as asked:
        yield asked.past


def _limits(past: Past, agent: str, every_s: int, needs: Mapping[str, float]) -> Iterator[Limit]:
    policy = Policy(kinds=[QuotaType.PRODUCE], short_log=True)
    limits = {limit.entity.client_id: limit for limit in advise_by_samples(past, policy).limits}
    for client, need in needs.items():
        limit = limits.get(client)
        lowest = 0.0 if limit is None or limit.recommendation is None else limit.recommendation.lowest
        sight = Sight.WHOLE if limit is None else limit.sight  # a client without any limit would be a silent miss
        yield Limit(agent=agent, every_s=every_s, client=client, ratio=lowest / need, sight=sight)


def _verdicts(
    past: Past,
    agent: str,
    every_s: int,
    candidates: Sequence[Candidate],
    replayed: Mapping[tuple[str, str], float],
) -> Iterator[Verdict]:
    for result in backtest(past, candidates).results:
        outcomes = {one.client_id: one for one in result.outcomes}
        for (candidate, client), share in replayed.items():
            if candidate != result.candidate:
                continue
            outcome = outcomes.get(client)
            yield Verdict(
                agent=agent,
                every_s=every_s,
                candidate=candidate,
                client=client,
                by_samples=outcome is not None and outcome.share > _OFTEN,
                by_replay=share > _OFTEN,
                is_marked=outcome is not None and outcome.sight is not Sight.WHOLE,
            )


def _show_limits(recording: Recording, limits: Sequence[Limit]) -> None:
    """Print the ratios of each load and interval, as docs/guides/recommend.md has them."""
    minutes = (recording.end - recording.begin) / 60
    say(f"{minutes:.0f} minutes, {len(AGENTS)} agents, {recording.seeds} clients of each load")
    say(f"| load | {' | '.join(f'{every_s} s' for every_s in INTERVALS)} |")
    say(f"|---|{'---|' * len(INTERVALS)}")
    for load in LOADS:
        clients = {client_of(load, seed) for seed in range(1, recording.seeds + 1)}
        cells = [
            _cell([one for one in limits if one.client in clients and one.every_s == every]) for every in INTERVALS
        ]
        say(f"| {load} | {' | '.join(cells)} |")
    for most_s in (5, 10, max(INTERVALS)):
        of_interval = [one for one in limits if one.every_s <= most_s]
        near = sum(one.is_near for one in of_interval)
        plain = [one for one in of_interval if not one.is_marked]
        missed = [one for one in of_interval if not one.is_near]
        say(
            f"at most {most_s} s: {near} of {len(of_interval)} within 10 % ({near / len(of_interval):.1%}); "
            f"{sum(one.is_near for one in plain)} of {len(plain)} without a mark; "
            f"{sum(one.is_marked for one in missed)} of {len(missed)} others are marked"
        )


def _cell(limits: Sequence[Limit]) -> str:
    ratios = sorted(one.ratio for one in limits)
    marked = sum(one.is_marked for one in limits)
    mark = "" if not marked else "≈ " if marked == len(limits) else f"≈ ({marked} of {len(limits)}) "
    return f"{mark}{ratios[0]:.2f} to {ratios[-1]:.2f}"


def _show_verdicts(verdicts: Sequence[Verdict]) -> None:
    for every_s in INTERVALS:
        of_interval = [one for one in verdicts if one.every_s == every_s]
        same = [one for one in of_interval if one.by_samples is one.by_replay]
        throttled = sum(one.by_replay for one in of_interval)
        others = [one for one in of_interval if one.by_samples is not one.by_replay]
        say(
            f"back-test every {every_s} s: {len(same)} of {len(of_interval)} as replayed, of which {throttled} are "
            f"throttled; {sum(one.is_marked for one in others)} of {len(others)} others are marked"
        )
