import yaml
from hypothesis import given
from tests.quotas.names import names, quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import QuotaSet, load, quotas_in, quotas_yaml
from quotascope.quotas.quota_file import quoted


@given(quota_sets)
def test_what_is_written_is_read_back(quotas: QuotaSet) -> None:
    """Whatever the names are."""
    text = quotas_yaml(quotas)
    assert quotas_in(load(text, "x"), "x") == quotas


@given(names)
def test_a_quoted_name_is_one_printable_line_and_the_same_for_every_reader(
    name: str,
) -> None:
    """Nothing of it can break the file, the terminal or the meaning of YAML 1.1."""
    assert quoted(name).isprintable()
    assert yaml.safe_load(f"user: {quoted(name)} # x") == {"user": name}


def test_a_file_reads_as_people_would_write_it() -> None:
    """Sorted, names in quotes, defaults not, whole numbers without a fraction."""
    quotas = QuotaSet(
        {
            QuotaEntity("alice", DEFAULT): {
                "request_percentage": 50.5,
                "producer_byte_rate": 1048576.0,
            },
            QuotaEntity("<default>"): {"consumer_byte_rate": 1.0},
        }
    )
    assert quotas_yaml(quotas) == (
        "quotas:\n"
        '  - user: {name: "<default>"}\n'
        "    consumer_byte_rate: 1\n"
        '  - user: "alice"\n'
        "    client-id: <default>\n"
        "    producer_byte_rate: 1048576\n"
        "    request_percentage: 50.5\n"
    )


def test_no_quotas_are_written_as_such() -> None:
    """The file says it, it is not empty."""
    assert quotas_yaml(QuotaSet()) == "quotas: []\n"
