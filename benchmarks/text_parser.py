"""
Times our reader of Prometheus text against prometheus_client's parser: `python -m benchmarks text-parser`.

One page of 30,000 lines, a tenth of them quotas of 600 entities as jmx_exporter writes them with the rules of
kafka-2_0_0.yml, the rest other metrics of a broker. Both turn the same bytes into numbers, one after the other in each
round. The peer gives every sample of the page, which is all that it can do; we give the columns of the quotas. Beside
it stands a page of nothing but quotas, where there is nothing to leave out.
"""

import argparse
from collections.abc import Callable
from functools import partial

from benchmarks.output import say
from benchmarks.timing import in_turns, ratios, spread, timed
from prometheus_client.parser import text_string_to_metric_families

from quotascope.exporter.sources.prometheus_text import TextReader

LINES = 30_000
GOAL = 5.0
"""Goal of the ratio per line, with a tenth of the lines quotas."""

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
PEER = "prometheus_client"


def page(lines: int, quotas: int, moment: int) -> bytes:
    """Return a page with a number of lines, some of them quotas, whose numbers are those of one moment."""
    text = [QUOTAS[line % len(QUOTAS)].format(line // len(QUOTAS), line * 1.37 + moment) for line in range(quotas)]
    text += [OTHERS[line % len(OTHERS)].format(line) for line in range(lines - quotas)]
    return "\n".join((*text, "")).encode()


def peer(answer: bytes) -> int:
    """Return the number of samples by prometheus_client."""
    families = text_string_to_metric_families(answer.decode())
    return sum(len(family.samples) for family in families)


def first(answer: bytes) -> int:
    """Read an agent's first page: each series is new."""
    return len(TextReader().read(answer).values)


def following() -> Read:
    """Return a function that reads all its other pages."""
    reader = TextReader()
    return lambda answer: len(reader.read(answer).values)


def compare(quotas: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of the peer, of our first read and of our later ones, round by round."""
    again = following()
    warm = page(LINES, quotas, 0)
    if again(warm) != quotas or first(warm) != quotas or peer(warm) != LINES:
        raise SystemExit("the two sides do not read the same")
    answer = b""

    def renew(number: int) -> None:
        nonlocal answer
        answer = page(LINES, quotas, number + 1)

    def seconds(read: Read) -> float:
        return timed(lambda: read(answer))[0]

    sides = {
        PEER: partial(seconds, peer),
        "first page": partial(seconds, first),
        "later pages": partial(seconds, again),
    }
    return in_turns(sides, rounds, prepare=renew)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=9)


def main(options: argparse.Namespace) -> int:
    """Print times per line, and how many times faster we are: min / median / max."""
    rounds = options.rounds
    for quotas in (LINES // 10, LINES):
        say(f"{LINES} lines, {quotas} of them quotas: ns per line, times faster (goal {GOAL:g} for a tenth)")
        times = compare(quotas, rounds)
        for side, seconds in times.items():
            faster = "" if side == PEER else f"; {spread(ratios(times[PEER], seconds), '.1f')}"
            say(f"  {side}: {spread(seconds, '.0f', 1e9 / LINES)}{faster}")
    return 0
