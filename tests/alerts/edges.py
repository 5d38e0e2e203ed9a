"""
Compare releases of Prometheus in other steps of scrapes and evaluations: `python -m tests.alerts.edges [SUBJECT...]`.

Cases hold for the steps for which they were written. Here their series are scraped and their rules evaluated in other
steps, and all alerts and recorded series are compared between the releases: they differ where a sample at the end of a
range decides. Of a series that has ended, 2.42 still takes a sample that is exactly as old as the lookback (5 minutes),
whatever rules ask: with scrapes every 5 minutes that is each one.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import promql_parser as parser
from tests.alerts.promtool import RULES, Case, cases, try_case
from tests.prometheus.releases import RELEASES

STEPS: Final = ("15s", "30s", "1m", "5m")
"""Intervals of scrapes and evaluations; the interval of a case is a minute unless it sets another."""
LOOKS: Final = 12
"""Number of times, spread over a case, at which all samples are compared."""
_SAMPLE: Final = re.compile(r'(?P<name>\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}) (?P<value>[-+.\dEInfNa]+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A sample that only one of the releases has, or that has another value there."""

    case: Case
    step: str
    sample: str

    def __str__(self) -> str:
        return f"{self.case} Every {self.step}: {self.sample}"


def differences(case: Case, step: str, folder: Path, rules: Mapping[str, Any] = RULES) -> Iterator[Difference]:
    """Yield the differences between the releases when the samples of a case come in another step."""
    last = max(len(_expanded(values)) for values in case.content["series"].values()) - 1
    seconds = int(parser.parse_duration(step).total_seconds())
    times = sorted({number * last // LOOKS * seconds for number in range(1, LOOKS + 1)})
    records = [{"expr": '{__name__=~"ALERTS|.+:.+"}', "eval_time": f"{time}s"} for time in times]
    content = {"case": case.content["case"], "series": case.content["series"], "every": step, "records": records}
    case_of_step = Case(subject=case.subject, content=content)
    samples = [_samples(try_case(case_of_step, folder, rules, release)) for release in RELEASES]
    for sample in sorted(samples[0] ^ samples[1]):
        yield Difference(case=case, step=step, sample=sample)


def _expanded(values: str) -> list[str]:
    """Return the samples of a series as texts, with repeated ones written out."""
    texts: list[str] = []
    for value in values.split():
        repeated = re.search(r"x(\d+)$", value)
        texts += [value] * (int(repeated[1]) + 1 if repeated else 1)
    return texts


def _samples(output: str) -> set[str]:
    """Return the samples in promtool's output, with values in nine digits: releases add in another order."""
    samples, time = set(), ""
    for line in output.splitlines():
        time = next(iter(re.findall(r"time: (\S+),", line)), time)
        kind, _, listed = line.strip().partition(": ")
        if kind == "got":
            samples |= {f"{time} {name} {float(value):.9g}" for name, value in _SAMPLE.findall(listed)}
    return samples


def main(subjects: Sequence[str]) -> int:
    """Print the differences of all cases, or of the cases of some subjects; return 1 if there are any."""
    chosen = [case for case in cases() if not subjects or case.subject in subjects]
    with tempfile.TemporaryDirectory() as folder:
        steps = [differences(case, step, Path(folder)) for case in chosen for step in STEPS]
        lines = [str(difference) for step in steps for difference in step]
    firing = sum('alertstate="firing"' in line for line in lines)
    summary = f"{len(chosen)} cases in {len(STEPS)} steps: {len(lines)} differences, {firing} of alerts that fire"
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, summary)))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
