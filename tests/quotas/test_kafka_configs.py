import shutil
import subprocess

from hypothesis import given
from hypothesis import strategies as st
from tests.quotas.names import names

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import IpEntity, QuotaSet, difference, kafka_configs
from quotascope.quotas.kafka_configs import bash_quoted

BASH = shutil.which("bash")
"""Every machine that runs `kafka-configs.sh` has it."""


@given(st.lists(names.filter(lambda name: "\0" not in name), min_size=1))
def test_bash_reads_back_every_word(words: list[str]) -> None:
    """As one argument each, whatever it holds, on one printable line, and in any locale."""
    assert BASH is not None
    line = " ".join(map(bash_quoted, words))
    assert line.isprintable()
    reported = subprocess.run(
        [BASH, "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, env={"LC_ALL": "C"}
    )
    assert reported.stdout.decode().split("\0")[:-1] == words


def test_one_command_for_each_entity() -> None:
    """Set and removed at once; every shape has its options."""
    old = QuotaSet({QuotaEntity("al ice"): {"request_percentage": 5.0}})
    values = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}
    new = QuotaSet(
        {
            QuotaEntity("al ice"): values,
            QuotaEntity(DEFAULT, "$(c)"): {"request_percentage": 0.5},
            QuotaEntity(None, DEFAULT): {"controller_mutation_rate": 3.0},
            IpEntity("10.0.0.1"): {"connection_creation_rate": 4.0},
        }
    )
    commands = kafka_configs(difference(old, new), bootstrap_servers="b:9092", command_config="a b.conf")
    start = "kafka-configs.sh --bootstrap-server b:9092 --command-config 'a b.conf'"
    assert commands.left_out == ()
    assert commands.lines == (
        f"{start} --entity-type users --entity-default --entity-type clients --entity-name '$(c)' --alter --add-config request_percentage=0.5",
        f"{start} --entity-type users --entity-name 'al ice' --alter --add-config consumer_byte_rate=2048,producer_byte_rate=1024 --delete-config request_percentage",
        f"{start} --entity-type clients --entity-default --alter --add-config controller_mutation_rate=3",
        f"{start} --entity-type ips --entity-name 10.0.0.1 --alter --add-config connection_creation_rate=4",
    )


def test_a_name_that_no_argument_can_hold_is_reported() -> None:
    """Instead of a command for another entity."""
    new = QuotaSet({QuotaEntity("a\0b"): {"request_percentage": 5.0}})
    commands = kafka_configs(difference(QuotaSet(), new), bootstrap_servers="b:1")
    assert commands.lines == ()
    assert commands.left_out == (r'user "a\x00b": no argument can hold a NUL',)
