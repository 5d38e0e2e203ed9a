"""The file of quotas that a team keeps under version control."""

from collections.abc import Iterator

from tests.fuzz.target import Target
from tests.strategies import HOSTILE

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.quotas import Entity, InvalidQuotas, QuotaSet, load, quotas_in, quotas_yaml

_SUBJECT = "fuzz.yaml"


def _read(data: bytes) -> None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    quotas = quotas_in(load(text, _SUBJECT), _SUBJECT)
    assert quotas_in(load(quotas_yaml(quotas), _SUBJECT), _SUBJECT) == quotas


def _seeds() -> Iterator[bytes]:
    yield b"""quotas:
- {user: alice, client-id: <default>, producer_byte_rate: 1_000, request_percentage: 50.5}
- {user: {name: <default>}, consumer_byte_rate: 2e3, controller_mutation_rate: 3}
- {ip: 10.0.0.1, connection_creation_rate: 6}
- {ip: <default>, connection_creation_rate: 7}
"""
    names: dict[Entity, dict[str, float]] = {
        QuotaEntity(name, DEFAULT): {"producer_byte_rate": 1.0} for name in HOSTILE[1:-1]
    }
    yield quotas_yaml(QuotaSet(names)).encode()
    yield b"quotas:\n- &a {client-id: x, request_percentage: 1}\n- {<<: *a, user: y}\n"


TARGET = Target(
    name="quotas_file",
    read=_read,
    refuses=(InvalidQuotas,),
    seeds=_seeds,
    words=(
        b"quotas:", b"user:", b"client-id:", b"ip:", b"<default>", b"name:", b"producer_byte_rate:",
        b"<<: *a", b"&a ", b"*a", b"!!int ", b"!!float ", b"!!timestamp ", b"0x", b"1e309",
    )
)  # fmt: skip
