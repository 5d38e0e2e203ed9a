"""
Times our reader of Prometheus text against prometheus_client's parser: `python -m benchmarks.text_parser`.

One page of 30,000 lines, a tenth of them quotas of 600 entities as jmx_exporter writes them with the rules of
kafka-2_0_0.yml, the rest other metrics of a broker. Both turn the same bytes into numbers, one after the other in each
round. The peer gives every sample of the page, which is all that it can do; we give the columns of the quotas. Beside it
stands a page of nothing but quotas, where there is nothing to leave out.
"""

import argparse
import statistics
import time
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from quotascope.exporter.sources.prometheus_text import TextReader

LINES = 30_000
GOAL = 5.0
"""How many times faster per line we are to be, with a tenth of the lines quotas."""

OTHERS = (
    'kafka_network_requestmetrics_totaltimems{{quantile="0.99",request="Fetch{0}"}} {0}.5',
    'kafka_log_log_size{{partition="{0}",topic="topic-{0}"}} 1.0{0}E7',
    'kafka_server_brokertopicmetrics_bytesin_total{{topic="topic-{0}"}} {0}.0',
    'kafka_cluster_partition_underreplicated{{partition="{0}",topic="topic-{0}"}} 0.0',
)
QUOTAS = (
    'kafka_server_quota_byte_rate{{clientId="app-{0}",resource="Produce",user="team%3A{0}"}} {1}',
    'kafka_server_quota_throttle_time{{clientId="app-{0}",resource="Produce",user="team%3A{0}"}} NaN',
    'kafka_server_quota_byte_rate{{clientId="app-{0}",resource="Fetch",user="team%3A{0}"}} {1}',
    'kafka_server_quota_throttle_time{{clientId="app-{0}",resource="Fetch",user="team%3A{0}"}} {1}',
    'kafka_server_quota_request_time{{clientId="app-{0}",resource="Request",user="team%3A{0}"}} {1}',
)
Read = Callable[[bytes], int]


def page(lines: int, quotas: int, moment: int) -> bytes:
    """A page of so many lines, so many of them quotas, whose numbers are those of one moment."""
    text = [QUOTAS[line % len(QUOTAS)].format(line // len(QUOTAS), line * 1.37 + moment) for line in range(quotas)]
    text += [OTHERS[line % len(OTHERS)].format(line) for line in range(lines - quotas)]
    return "\n".join((*text, "")).encode()


def peer(answer: bytes) -> int:
    """Every sample by prometheus_client."""
    families = text_string_to_metric_families(answer.decode())
    return sum(len(family.samples) for family in families)


def first(answer: bytes) -> int:
    """What we do with an agent's first page: each series is new."""
    return len(TextReader().read(answer).values)


def following() -> Read:
    """What we do with all its other pages."""
    reader = TextReader()
    return lambda answer: len(reader.read(answer).values)


def seconds(read: Read, answer: bytes) -> float:
    """Return the time that one read takes."""
    start = time.perf_counter()
    read(answer)
    return time.perf_counter() - start


def compare(quotas: int, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Times of the peer and ours by the kind of our read, round by round."""
    again = following()
    warm = page(LINES, quotas, 0)
    if again(warm) != quotas or first(warm) != quotas or peer(warm) != LINES:
        raise SystemExit("the two sides do not read the same")
    times: dict[str, tuple[list[float], list[float]]] = {
        "first page": ([], []),
        "following pages": ([], []),
    }
    for moment in range(1, rounds + 1):
        answer = page(LINES, quotas, moment)
        for kind, read in zip(times, (first, again), strict=True):
            theirs, ours = times[kind]
            theirs.append(seconds(peer, answer))
            ours.append(seconds(read, answer))
    return times


def spread(numbers: list[float], digits: int) -> str:
    """Return min, median and max."""
    ordered = (min(numbers), statistics.median(numbers), max(numbers))
    return " / ".join(f"{number:.{digits}f}" for number in ordered)


def main() -> None:
    """Print times per line, and how many times faster we are: min / median / max."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    arguments.add_argument("--rounds", type=int, default=9)
    rounds = arguments.parse_args().rounds
    for quotas in (LINES // 10, LINES):
        print(f"{LINES} lines, {quotas} of them quotas")  # noqa: T201
        for kind, (theirs, ours) in compare(quotas, rounds).items():
            ratios = [left / right for left, right in zip(theirs, ours, strict=True)]
            per_line = [[time * 1e9 / LINES for time in times] for times in (theirs, ours)]
            goal = f" (goal {GOAL:g})" if quotas < LINES else ""
            print(f"  {kind}: {spread(ratios, 1)} times faster{goal}")  # noqa: T201
            print(f"    prometheus_client {spread(per_line[0], 0)} ns per line")  # noqa: T201
            print(f"    quotascope        {spread(per_line[1], 0)} ns per line")  # noqa: T201


if __name__ == "__main__":
    main()
