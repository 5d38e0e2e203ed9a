"""
Labels of quota lines.

Understood, of one value on the page, or the page is refused; and lines that could not be placed.
"""

import pytest

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources.prometheus_text import TextPage, TextReader

SPACES = 'kafka_server_quota_byte_rate {resource="Produce",user="a",} 1 1795930497795\n'


def names(page: TextPage) -> set[tuple[tuple[str, str], ...]]:
    """Return the key properties of all beans."""
    return {column.bean.properties for column in page.layout.columns}


def read(*lines: str) -> TextPage:
    return TextReader().read("".join(f"{line}\n" for line in ("jmx_scrape_error 0.0", *lines)).encode())


def test_an_object_name_says_everything() -> None:
    """The object name overrules labels, which a rule has cut or lost; names that Java quotes are unquoted."""
    line = (
        'kafka_server_quota_byte_rate{_objectname="kafka.server<type=Produce, user=svc%%3Aa, '
        'client-id=%s><>byte-rate",resource="Produce"} %d'
    )
    page = read(line % ("app", 1), line % (r"\"a, b=c\"", 2))
    produce = ("type", "Produce"), ("user", "svc%3Aa")
    assert names(page) == {(("client-id", "app"), *produce), (("client-id", "a, b=c"), *produce)}


@pytest.mark.parametrize("name", ["kafka.server<type=Produce", "", "x<y", 'kafka.server<type="a><>b'])
def test_a_broken_object_name_is_reported(name: str) -> None:
    good = 'kafka_server_quota_byte_rate{resource="Fetch",user="a"} 1'
    text = name.replace('"', '\\"')
    bad = f'kafka_server_quota_byte_rate{{_objectname="{text}",resource="Produce"}} 1'
    unplaced = read(good, bad).coverage.unplaced
    assert unplaced is not None
    assert (unplaced.count, unplaced.reason) == (1, "its label _objectname names no MBean")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('kafka_server_quota_byte_rate{user="a"}', "neither its name nor a label has the quota type"),
        ('kafka_server_quota_byte_rate{user="a",type="Consume-ish"}', "Consume-ish is no quota type"),
        ('kafka_server_produce_byte_rate{user="a",type="Fetch"}', "its name says Produce, a label Fetch"),
        ('kafka_server_quota_byte_rate{user="a",resource="Produce",clientId="\\"b"}', "its values are not quoted"),
        ('kafka_server_quota_byte_rate{resource="Produce"}', "no label for a user or a client-id"),
    ],
)
def test_a_line_that_cannot_be_placed_is_named(line: str, reason: str) -> None:
    """A line without a meaning refuses the page if it is alone, and otherwise is counted with a remark."""
    with pytest.raises(
        SourceUnreadable, match=r"1 line is named like quota metrics, but cannot be read, such as kafka_server"
    ) as caught:
        read(f"{line} 5")
    assert reason in str(caught.value)
    assert "expected are" in str(caught.value)
    page = read(f"{line} 5", 'kafka_server_quota_throttle_time{resource="Fetch",user="z"} 1')
    assert page.coverage.unplaced is not None
    assert page.coverage.unplaced.count == 1
    assert reason in page.coverage.unplaced.text


@pytest.mark.parametrize("other", ["Fetch", "Request"])
def test_a_type_in_a_label_that_contradicts_the_name_is_not_placed(other: str) -> None:
    """The label `type` is no part of the name of these rules: its line is counted as not understood, and no other."""
    good = 'kafka_server_Fetch_byte_rate{user="a"} 1'
    page = TextReader().read(
        f'kafka_server_app_info_starttimems{{id="1"}} 1\n{good}\n'
        f'kafka_server_Produce_byte_rate{{type="{other}"}} 2\n'.encode()
    )
    assert not any(("type", "Produce") in properties for properties in names(page))
    assert {("type", "Fetch"), ("user", "a")} in map(set, names(page))


def test_lines_that_are_gone_are_not_counted() -> None:
    reader = TextReader()
    good = b'kafka_server_quota_byte_rate{resource="Fetch",user="a"} 1\n'
    bad = b'kafka_server_quota_byte_rate{resource="x",user="a"} 1\n'
    for text, count in ((good + bad, 1), (good, 0), (good + bad + bad.replace(b'"a"', b'"b"'), 2)):
        unplaced = reader.read(text).coverage.unplaced
        assert (unplaced.count if unplaced else 0) == count


@pytest.mark.parametrize(
    "line",
    [
        'kafka_server_quota_byte_rate{resource="LeaderReplication",user="a"}',
        'kafka_server_quota_byte_rate{resource="socket-server-metrics, listener=x",clientId="a"}',
        'kafka_server_quota_byte_rate{resource="RLMCopyQuotaManager",clientId="a"}',
        'kafka_server_quota_connection_count{resource="x",clientId="a"}',
        'kafka_server_quota_start_time_ms{resource="app-info"}',
    ],
)
def test_other_beans_that_greedy_rules_name_alike_are_no_quota_lines(line: str) -> None:
    page = read(f"{line} 5", 'kafka_server_quota_byte_rate{resource="Fetch",user="z"} 1')
    assert (page.coverage.unplaced, page.remark, len(page.layout.columns)) == (None, None, 1)


def test_a_label_of_the_page_may_change_with_all_of_it() -> None:
    """A broker that moved has another pod; that is no second broker."""
    reader = TextReader()
    line = 'kafka_server_quota_byte_rate{pod="%s",resource="Fetch",user="%s"} 1\n'
    for pod in ("kafka-0", "kafka-1"):
        text = "".join(line % (pod, user) for user in "ab")
        assert len(reader.read(text.encode()).layout.columns) == 2
    with pytest.raises(SourceUnreadable, match="several brokers"):
        reader.read((line % ("kafka-1", "a") + line % ("kafka-2", "b")).encode())
    assert len(reader.read((line % ("kafka-2", "b")).encode()).layout.columns) == 1


def test_a_node_of_another_broker_is_another_broker() -> None:
    """A node's line of another broker refuses the page, even if only one of the two has quotas."""
    lead = 'kafka_controller_kafkacontroller_activecontrollercount{instance="%s"} 1'
    line = 'kafka_server_quota_byte_rate{instance="a:1",resource="Fetch",user="x"} 1'
    assert len(read(line, lead % "a:1").layout.columns) == 2
    with pytest.raises(SourceUnreadable, match="several brokers"):
        read(line, lead % "b:1")


@pytest.mark.parametrize("place", ["instance", "kubernetes_pod_name", "env"])
@pytest.mark.parametrize("name", ["kafka_server_Produce_byte_rate", "kafka_server_produce_byte_rate"])
def test_where_beans_come_whole_a_tag_of_a_callback_is_told_from_a_label_of_the_page(name: str, place: str) -> None:
    """A label of the page has a known name or is on lines about nodes; a callback's tag is neither."""
    tag = (f'{name}{{tenant="a",{place}="p"}} 1', f'{name.replace("byte_rate", "queue_size")}{{{place}="p"}} 0')
    page = TextReader().read("\n".join((*tag, "")).encode())
    assert names(page) == {(("tenant", "a"), ("type", "Produce")), (("type", "Produce"),)}
    assert page.coverage.tagged
    several = "".join(f'{name}{{tenant="{tenant}",{place}="p"}} 1\n' for tenant in "ab").encode()
    assert TextReader().read(several).coverage.tagged
    client = f'{name}{{client_id="c",{place}="p"}} 1\n'.encode()
    assert names(TextReader().read(client)) == {(("client-id", "c"), ("type", "Produce"))}


def test_a_label_of_our_own_rules_is_read_as_strictly() -> None:
    line = 'kafka_quota_produce_bytes_per_second{client_id="c",user="u",%s} 1'
    start = 'kafka_quota_node_start_time_seconds{node_id="1"} 1'
    assert len(read(start, line % 'env="x"').layout.columns) == 2
    with pytest.raises(SourceUnreadable, match="label tier tells series apart"):
        read(start, line % 'tier="x"', line % 'tier="y"')


def test_our_rules_beside_others_are_read() -> None:
    """A page may have our rules beside others, as after adding the output of `quotascope rules check`."""
    page = read(
        'kafka_server_quota_throttle_time{resource="Fetch",user="z"} 7',
        'kafka_quota_throttle_time_seconds{quota_type="fetch",user="y"} 3',
        'kafka_quota_delay_queue_size{quota_type="fetch"} 2',
    )
    assert sorted(page.values) == [2.0, 7.0, 3000.0]
    assert not page.coverage.complete


def test_blanks_commas_and_timestamps_are_read_from_page_to_page() -> None:
    reader = TextReader()
    for value in (1, 2):
        page = reader.read(SPACES.replace("} 1", f"}} {value}").encode())
        assert [*page.values] == [value]


def test_labels_and_names_without_end_are_bounded() -> None:
    """Ever new labels and names of an agent take bounded memory."""
    reader = TextReader()
    for index in range(3):
        names = "".join(f'kafka_server_quota_x{index}_{number}{{a="b"}} 1\n' for number in range(3_000))
        assert len(reader.read(names.encode() + SPACES.encode()).layout.columns) == 1
    varying = "".join(
        f'kafka_server_socket_server_metrics_x{{l{number}="{value}"}} 1\n' for number in range(40) for value in "ab"
    )
    with pytest.raises(SourceUnreadable, match="more than 32 labels"):
        TextReader().read(varying.encode() + b'kafka_server_Produce_byte_rate{user="a"} 1\n')


NAMES = ("kafka_server_Produce_byte_rate", "kafka_server_produce_byte_rate")


def of_clients(name: str, *clients: str) -> bytes:
    return "".join(f"{name}{{{client}}} 1\n" for client in clients).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_label_with_one_value_on_all_clients_is_one_of_the_page(name: str) -> None:
    """A label is the page's while all clients have it with one value, and otherwise a tag of a custom callback."""
    eu = [f'client_id="{client}",my_tier="eu"' for client in "ab"]
    us = 'client_id="c",my_tier="us"'
    pages: list[tuple[list[str], int, bool]] = [
        (eu, 2, False),
        (['client_id="c"'], 1, False),
        (eu, 2, False),
        ([us], 1, False),
        ([*eu, us], 3, True),
        ([*eu, 'client_id="c"'], 3, True),
        ([*eu, 'my_tier="eu"'], 3, True),
        (['my_tier="eu"'], 1, True),
    ]
    reader = TextReader()
    for clients, count, tagged in pages:
        for order in (clients, clients[::-1]):
            fresh, followed = (text_reader.read(of_clients(name, *order)) for text_reader in (TextReader(), reader))
            assert (len(fresh.layout.columns), fresh.coverage.tagged) == (count, tagged)
            assert fresh.coverage.labels_of_page == (("my_tier",) if "my_tier" in order[0] and not tagged else ())
            assert names(followed) == names(fresh), order
    assert reader.read(of_clients(name, *eu)).coverage.tagged  # once a tag, always a tag


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_the_page_and_tags_may_stand_together(name: str) -> None:
    page = TextReader().read(of_clients(name, 'user="a",tier="x",zone_of="1"', 'user="a",tier="y",zone_of="1"'))
    assert {key for bean in names(page) for key, _ in bean} == {"user", "tier", "type"}
    assert page.coverage.labels_of_page == ("zone_of",)


@pytest.mark.parametrize(
    ("label", "advice"),
    [
        ('tenant="x"', "Remove it from the agent's rules"),
        ('cluster="west"', "the agent of each broker"),
        ('zone_of="a"', "Remove"),
    ],
)
@pytest.mark.parametrize("another_line", ['user="b"', 'user="b",clientId="c"', 'clientId="c"'])
def test_a_label_on_some_lines_of_one_rule_tells_series_apart(label: str, advice: str, another_line: str) -> None:
    """A label on only some lines of a rule tells series apart; other rules may have other labels."""
    plain, labeled = (
        f'kafka_server_quota_byte_rate{{resource="Fetch",{another_line}}} 1',
        f'resource="Fetch",{another_line},{label}',
    )
    named = f"kafka_server_quota_byte_rate{{{labeled}}} 2".replace('"b"', '"a"').replace('"c"', '"d"')
    for order in ((plain, named), (named, plain)):
        with pytest.raises(SourceUnreadable, match=rf"label {label.partition('=')[0]} tells series apart.*{advice}"):
            read(*order)
    for by_another_rule in (named.replace("Fetch", "Produce"), named.replace("byte_rate", "throttle_time")):
        assert len(names(read(plain, by_another_rule))) == 2
