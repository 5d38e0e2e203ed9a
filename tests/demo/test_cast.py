"""The clients of the demo, their rules and rhythms."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from quotascope.demo import CAST, RULES
from quotascope.demo.cast import Call, CreateTopics, Fetch, Produce, Rhythm, Role
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType

_CAST = """
etl                 spark-nightly          writes 600000  every 100   from 0    6 ms   busy 14000 pause 6000
etl                 spark-backfill         writes 250000  every 240   from 300  5 ms   busy 0 pause 0
orders              orders-api             writes 46000   every 50    from 50   3 ms   busy 0 pause 0
CN=billing,O=Acme   invoice_writer_#2_"A/B"* writes 150000 every 200  from 120  4 ms   busy 0 pause 0
alice               dashboard              reads 300000   every 400   from 80   4 ms   busy 0 pause 0
bob                 dashboard              reads 300000   every 400   from 280  4 ms   busy 0 pause 0
dana                notebook               reads 500000   every 1000  from 500  5 ms   busy 0 pause 0
mirror              mirror-maker           reads 400000   every 100   from 30   8 ms   busy 0 pause 0
checkout            cart-svc               asks -         every 25    from 10   9 ms   busy 0 pause 0
deploy              terraform              creates 3,3,3,3,3,3,3,3/7 every 12000 from 1000 20 ms busy 0 pause 0
connect             connect-cluster        creates 3/5    every 2000  from 700  10 ms  busy 0 pause 0
cellar              till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
gifts               till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
mail                till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
prices              till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
reviews             till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
search              till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
stock               till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
tracking            till                   writes 100000  every 200   from 120000 2 ms busy 420000 pause 1380000 on 12
ci                  topic-tests            creates 3,3,3,3,3,3,3,3,3,3/7 every 500 from 540000 20 ms busy 480000 pause \
    1320000 on 4
"""
"""
User, client-id, what is asked for, how often (ms), the first time (ms), what it takes of a thread, bursts, connections
if several.
"""


def _asked(role: Role) -> str:
    match role.request:
        case Produce(size=size):
            return f"writes {size}"
        case Fetch(size=size):
            return f"reads {size}"
        case CreateTopics(partitions=partitions, version=version):
            return f"creates {','.join(map(str, partitions))}/{version}"
        case Call():
            return "asks -"


def test_each_client_does_what_is_written_down() -> None:
    """Names, sizes and times are as written: the tour of the demo covers them."""
    roles = [
        f"{role.user} {role.client_id.replace(' ', '_')} {_asked(role)} every {role.rhythm.every_ms} "
        f"from {role.rhythm.first_ms} {role.thread_ms:g} ms busy {role.rhythm.busy_ms} pause {role.rhythm.pause_ms}"
        + (f" on {role.connections}" if role.connections > 1 else "")
        for role in CAST
    ]
    assert roles == [" ".join(line.split()) for line in _CAST.strip().splitlines()]
    assert {role.rhythm.jitter for role in CAST} == {0.1}


def test_rules_are_those_that_are_written_down() -> None:
    """The limits are in Kafka's units: bytes/s, percent of a thread, partitions/s."""
    assert {
        QuotaType.PRODUCE: {
            QuotaEntity("etl", "spark-nightly"): 2e6,
            QuotaEntity("etl", DEFAULT): 8e5,
            QuotaEntity("orders", None): 1e6,
            QuotaEntity(DEFAULT, None): 5e5,
        },
        QuotaType.FETCH: {
            QuotaEntity(DEFAULT, "notebook"): 2.5e5,
            QuotaEntity(None, "dashboard"): 1e6,
        },
        QuotaType.REQUEST: {QuotaEntity(DEFAULT, DEFAULT): 20},
        QuotaType.CONTROLLER_MUTATION: {
            QuotaEntity("deploy", None): 1,
            QuotaEntity(None, DEFAULT): 2,
        },
    } == RULES


BURSTS = Rhythm(every_ms=100, jitter=0.0, busy_ms=1_000, pause_ms=4_000, first_ms=50)


def dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nothing secret


@given(seed=st.integers(), elapsed_ms=st.integers(0, 10_000_000))
def test_jitter_stays_within_its_part(seed: int, elapsed_ms: int) -> None:
    """Jitter of a tenth moves a request by a tenth of its interval at most, and jitter of 0 by nothing."""
    assert Rhythm(every_ms=250, jitter=0.0).next_ms(1_000, dice(1)) == 1_250
    rhythm = Rhythm(every_ms=200, jitter=0.1)
    assert 180 <= rhythm.next_ms(elapsed_ms, dice(seed)) - elapsed_ms <= 220


def test_jitter_takes_all_of_its_part() -> None:
    """Some of 200 requests are nearly as early, and some nearly as late, as jitter permits."""
    rhythm, random = Rhythm(every_ms=200, jitter=0.1), dice(1)
    times_ms = [rhythm.next_ms(0, random) for _ in range(200)]
    assert min(times_ms) < 184
    assert max(times_ms) > 216


def test_nothing_is_due_in_a_pause() -> None:
    """A request within a pause waits for the next burst; bursts are counted from the first request."""
    due = {50: 150, 949: 1_049, 950: 5_050, 1_049: 5_050, 5_050: 5_150}
    assert {elapsed_ms: BURSTS.next_ms(elapsed_ms, dice(1)) for elapsed_ms in due} == due
