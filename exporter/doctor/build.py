"""All checks of a configuration, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from ..config import Config
from .agents import agents
from .certificates import certificates
from .clocks import clocks
from .cluster import ClusterAnswers, permissions, reachability
from .evidence import Evidence
from .examination import Check
from .finding_nodes import discoveries
from .listening import listening
from .quotas import quotas, unused
from .receiver import receiver
from .result import Result, Verdict
from .secrets import secrets
from .windows import windows

_NO_KAFKA = Result(
    check="kafka",
    verdict=Verdict.LOOK,
    text="No Admin API is configured: limits, rules and utilisation are unknown.",
    advice="Set kafka.bootstrap_servers.",
)


def checks_of(
    evidence: Evidence,
    environ: Mapping[str, str],
    scraped_every_seconds: float | None = None,
) -> list[Check]:
    """
    What there is to look at.

    Args:
        evidence: What several of them share.
        environ: The environment, which may say where to push.
        scraped_every_seconds: How often Prometheus scrapes, where that is known.

    """
    config = evidence.config
    told = partial(_of_cluster, evidence)

    def compared(answers: ClusterAnswers) -> Iterable[Result]:
        return windows(answers, config.collection, scraped_every_seconds)

    checks = [
        Check(name="kafka", look=partial(_kafka, evidence)),
        Check(name="permissions", look=told(permissions)),
        Check(name="discovery", look=partial(_discovery, evidence)),
        Check(name="agents", look=partial(_agents, evidence)),
        Check(name="quotas", look=partial(_quotas, evidence)),
        Check(name="windows", look=told(compared)),
        Check(name="clocks", look=partial(_clocks, evidence)),
        Check(name="certificates", look=partial(_certificates, evidence)),
        Check(name="secrets", look=partial(_secrets, config)),
        Check(name="listening", look=partial(listening, config.server)),
    ]
    if config.otlp is not None:
        otlp = partial(receiver, config.otlp, environ)
        checks.append(Check(name="otlp", look=otlp))
    return checks


def _of_cluster(
    evidence: Evidence, view: Callable[[ClusterAnswers], Iterable[Result]]
) -> Callable[[], Awaitable[Iterable[Result]]]:
    """What is said about the cluster's answers; nothing where those are missing, which the check of Kafka tells."""

    async def look() -> Iterable[Result]:
        answers = await evidence.answers()
        return () if answers is None else view(answers)

    return look


async def _kafka(evidence: Evidence) -> Iterable[Result]:
    answers = await evidence.cluster()
    return [_NO_KAFKA] if answers is None else reachability(answers)


async def _discovery(evidence: Evidence) -> Iterable[Result]:
    if not evidence.config.discovery.wanted:
        return ()
    return discoveries(await evidence.snapshot())


async def _agents(evidence: Evidence) -> Iterable[Result]:
    snapshot = await evidence.snapshot()
    return agents(evidence.reads, snapshot.limits)


async def _quotas(evidence: Evidence) -> Iterable[Result]:
    snapshot = await evidence.snapshot()
    return [*quotas(snapshot), *unused(snapshot)]


async def _clocks(evidence: Evidence) -> Iterable[Result]:
    return await clocks([*evidence.config.sources, *await evidence.nodes()])


async def _certificates(evidence: Evidence) -> Iterable[Result]:
    return await certificates(evidence.config, await evidence.nodes())


async def _secrets(config: Config) -> Iterable[Result]:
    return secrets(config)
