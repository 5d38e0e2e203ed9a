"""The demo's clients and rules, and that each shows what it is there to show."""

from __future__ import annotations

from quotascope.demo import CAST, RULES
from quotascope.demo.cast import Call, CreateTopics, Fetch, Produce, Role
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

_CAST = """
etl                 spark-nightly          writes 600000  every 100   from 0    6 ms   busy 14000 pause 6000
etl                 spark-backfill         writes 250000  every 240   from 300  5 ms   busy 0 pause 0
orders              orders-api             writes 45000   every 50    from 50   3 ms   busy 0 pause 0
CN=billing,O=Acme   invoice_writer_#2_"A/B"* writes 150000 every 200  from 120  4 ms   busy 0 pause 0
alice               dashboard              reads 300000   every 400   from 80   4 ms   busy 0 pause 0
bob                 dashboard              reads 300000   every 400   from 280  4 ms   busy 0 pause 0
dana                notebook               reads 500000   every 1000  from 500  5 ms   busy 0 pause 0
mirror              mirror-maker           reads 400000   every 100   from 30   8 ms   busy 0 pause 0
checkout            cart-svc               asks -         every 25    from 10   9 ms   busy 0 pause 0
deploy              terraform              creates 3,3,3,3,3,3,3,3/7 every 12000 from 1000 20 ms busy 0 pause 0
connect             connect-cluster        creates 3/5    every 2000  from 700  10 ms  busy 0 pause 0
"""
"""User, client-id, what is asked for, how often (ms), the first time (ms), what it takes of a thread, bursts."""


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


def test_everybody_does_what_is_written_down() -> None:
    """Names, sizes and times: the tour of the demo tells of them."""
    found = [
        f"{role.user} {role.client_id.replace(' ', '_')} {_asked(role)} every {role.rhythm.every_ms} from {role.rhythm.first_ms} "
        f"{role.thread_ms:g} ms busy {role.rhythm.busy_ms} pause {role.rhythm.pause_ms}"
        for role in CAST
    ]
    assert found == [" ".join(line.split()) for line in _CAST.strip().splitlines()]
    assert {role.rhythm.jitter for role in CAST} == {0.1}


def test_rules_are_those_that_are_written_down() -> None:
    """In Kafka's units: bytes/s, percent of a thread, partitions/s."""
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
