"""YAML that people or programs wrote, and quotas in it."""

import io
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from tests.quotas.names import names, quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import (
    STDIN,
    InvalidQuotas,
    IpEntity,
    Located,
    QuotaSet,
    StrictLoader,
    load,
    load_file,
    quotas_in,
    quotas_yaml,
    read_quotas,
    refusing,
    rules_of,
)
from quotascope.quotas.quota_file import quoted


def test_what_is_no_problem_of_the_file_passes() -> None:
    """A room's own error within the block is not one of the file."""
    with pytest.raises(KeyError), refusing(lambda problem: InvalidQuotas("x", [problem])):
        raise KeyError


def loaded(text: str) -> object:
    return yaml.load(text, StrictLoader)  # noqa: S506 - a SafeLoader


def test_what_is_usual_is_read() -> None:
    """Anchors, merges and every kind of scalar."""
    text = "a: &a {x: 1, y: 0x1f}\nb: {<<: *a, x: 2.5}\nc: [*a, 2026-01-01, ~, 'é']\n"
    document = loaded(text)
    assert document == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        *("!!timestamp x", "!!int ''", "!!int x", "!!float ''", "!!bool x", "!!binary ü", "2026-13-45"),
        *("a: [1, {b: !!int -}]", "0x" + "f" * 5_000, ":".join(["59"] * 5_000), "9" * 400, "9" * 5_000),
        *("&a [*a]", "&a {b: *a}", "&a {<<: *a}"),
    ],
)
def test_what_does_not_fit_is_an_error_with_its_line(text: str) -> None:
    """Where PyYAML raises whatever Python makes of it, or writes a number for minutes."""
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        loaded(text)
    assert caught.value.problem_mark is not None
    assert caught.value.problem_mark.line == 0
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("a0: &a0 [x, x]", "a{n}: &a{n} [{aliases}]"),
        ("a0: &a0 {k0: 1}", "a{n}: &a{n} {{<<: [{aliases}], k{n}: 1}}"),
        ("a0: &a0 {k0: 1}", "a{n}: &a{n} {{k: [{aliases}]}}"),
    ],
)
def test_aliases_stand_for_no_more_than_so_much(first: str, line: str) -> None:
    """In lists and in merges a kilobyte could stand for more than any memory holds; so is the memory bounded that it takes to find out."""
    text = "\n".join([first, *(line.format(n=n, aliases=", ".join([f"*a{n - 1}"] * 9)) for n in range(1, 30))])
    tracemalloc.start()
    try:
        with pytest.raises(yaml.MarkedYAMLError, match="repeats too much"):
            loaded(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_many_rules_may_share_one_text() -> None:
    """A file with thousands of rules that merge the same settings is usual."""
    rules = "\n".join(f"- {{<<: *a, user: u{n}}}" for n in range(3_000))
    assert loaded(f"- &a {{x: 1, y: 2}}\n{rules}") is not None


def read(text: str) -> Located:
    return load(text, "x")


def test_values_know_their_lines() -> None:
    """Mappings, lists and scalars; nothing, or nothing but comments, is an empty mapping."""
    assert read("").mapping == read("# no\n").mapping == {}
    document = read("a:\n  - 1\n  - b: 'two'\n")
    assert document.mapping is not None
    items = document.mapping["a"].items
    assert items is not None
    assert (items[0].line, items[0].value) == (2, 1)
    assert items[1].mapping is not None
    first, second = items[0], items[1].mapping["b"]
    assert (second.line, second.value, second.quoted) == (3, "two", True)
    assert (first.text, first.quoted, first.mapping, first.items) == ("1", False, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a: [", "line 1: not valid YAML"),
        (b"a: 1\nb: [", "line 2: not valid YAML: "),
        (b"a: 1\na: 2\n", "line 2: the key 'a' is there twice"),
        (b"%s: 1\n" % (b"x" * 70) * 2, f"line 2: the key '{'x' * 60}' is there twice"),
        (b"a: \x00", "is not valid YAML: unacceptable character"),
        (b"a: \xff", "is not UTF-8 text (byte 3)"),
        (b"a: 2026-13-45", "line 1: not valid YAML: this is no timestamp"),
        (b"a: &x [*x]", "this alias repeats too much, or what it is in"),
        (b"[" * 30 + b"]" * 30, "more than 20 levels"),
        (b"a: !!python/object:os.system x", "not valid YAML"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: bytes | None, reason: str) -> None:
    """With the file, and the line, where it has one; nothing is executed."""
    path = tmp_path / "q.yaml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(InvalidQuotas, match=r"q\.yaml: ") as caught:
        load_file(path)
    assert reason in str(caught.value)


def test_what_aliases_repeat_is_read_once() -> None:
    """Rules that share settings may share the text."""
    mapping = read("a: &a [x, x]\nb: [*a, *a]\n").mapping
    assert mapping is not None
    items = mapping["b"].items
    assert items is not None
    assert items[0] is items[1] is mapping["a"]


def test_a_file_or_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte order mark is no part of it."""
    path = tmp_path / "q.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_file(path).mapping is not None
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: [")))
    with pytest.raises(InvalidQuotas, match="standard input: line 1") as caught:
        load_file(STDIN)
    assert caught.value.__suppress_context__


ALL_SHAPES = """
quotas:
  - user: alice
    client-id: app1
    producer_byte_rate: 1_000
    consumer_byte_rate: 2e3
  - {user: alice, client-id: <default>, request_percentage: 50.5}
  - {user: alice, controller_mutation_rate: 3}
  - {user: <default>, client-id: app1, request_percentage: 1}
  - {user: <default>, client-id: <default>, request_percentage: 2}
  - {user: <default>, request_percentage: 3}
  - {client-id: app1, request_percentage: 4}
  - {client-id: <default>, request_percentage: 5}
  - {ip: 10.0.0.1, connection_creation_rate: 6}
  - {ip: <default>, connection_creation_rate: 7}
  - {user: {name: <default>}, request_percentage: 8}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidQuotas) as caught:
        quotas_in(load(text, "q.yaml"), "q.yaml")
    return list(caught.value.problems)


def test_every_shape_of_entity_is_understood(tmp_path: Path) -> None:
    """All eight levels, addresses and their default, and a name that only looks like the default."""
    path = tmp_path / "q.yaml"
    path.write_text(ALL_SHAPES)
    percent = "request_percentage"
    assert read_quotas(path) == QuotaSet(
        {
            QuotaEntity("alice", "app1"): {"producer_byte_rate": 1_000.0, "consumer_byte_rate": 2_000.0},
            QuotaEntity("alice", DEFAULT): {percent: 50.5},
            QuotaEntity("alice"): {"controller_mutation_rate": 3.0},
            QuotaEntity(DEFAULT, "app1"): {percent: 1.0},
            QuotaEntity(DEFAULT, DEFAULT): {percent: 2.0},
            QuotaEntity(DEFAULT): {percent: 3.0},
            QuotaEntity(None, "app1"): {percent: 4.0},
            QuotaEntity(None, DEFAULT): {percent: 5.0},
            IpEntity("10.0.0.1"): {"connection_creation_rate": 6.0},
            IpEntity(DEFAULT): {"connection_creation_rate": 7.0},
            QuotaEntity("<default>"): {percent: 8.0},
        }
    )


@pytest.mark.parametrize("text", ["quotas:", "quotas: []"])
def test_no_quotas_at_all_are_quotas(text: str) -> None:
    """A cluster without limits can be kept in a file."""
    assert quotas_in(load(text, "x"), "x") == QuotaSet()


@pytest.mark.parametrize("text", ["", "rules: []", "- user: a"])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    """It would read as: remove everything."""
    assert problems(text) == ["line 1: expected the key `quotas`"]


NOT_PLAIN = "'producer_byte_rate' must be a plain number"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("[a]", "expected keys and values, such as `user:`"),
        ("{producer_byte_rate: 1}", "needs a user, a client-id, both, or an ip alone"),
        ("{ip: 1.2.3.4, user: a, connection_creation_rate: 1}", "or an ip alone"),
        ("{user: alice}", "user alice has no quota"),
        ("{user: 123, request_percentage: 1}", 'user must be text, such as "123"'),
        ("{user: yes, request_percentage: 1}", 'user must be text, such as "yes"'),
        ("{user: , request_percentage: 1}", "user must be text, such as <default>"),
        ("{user: [a], request_percentage: 1}", "user must be text"),
        ("{user: {name: 1}, request_percentage: 1}", "user must be text"),
        ("{user: '', request_percentage: 1}", "the name of 'user' is empty"),
        ('{user: "\\ud800", request_percentage: 1}', "user contains an incomplete Unicode character"),
        ("{user: a, producer_byte_rate: '1'}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: 0100}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: .nan}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: [1]}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: Infinity}", "too large for LONG"),
        ("{user: a, producer_byte_rate: 0}", "producer_byte_rate must be greater than 0"),
        ("{user: a, producer_byte_rate: 1.5}", "producer_byte_rate must be a whole number"),
        ("{user: a, producer_byte_rate: 1e30}", "too large for LONG"),
        ("{user: a, producer_byterate: 1}", "'producer_byterate' is none of this entity's keys: producer_byte_rate"),
        ("{usr: alice}", "unknown key 'usr'; did you mean 'user'?"),
        ("{color: red}", "unknown key 'color'; known: user, client-id, ip and quota"),
        ("{user: a, connection_creation_rate: 1}", "none of this entity's keys"),
        ("{ip: 'not an address', connection_creation_rate: 1}", "is not an address"),
        ("{ip: 1.2.3.4, request_percentage: 1}", "none of this entity's keys"),
    ],
)
def test_what_no_controller_would_store_is_reported_with_its_line(rule: str, problem: str) -> None:
    """Before anything is sent, and the good rules around it are no problem."""
    good = "  - {user: z, request_percentage: 1}\n"
    (found,) = problems(f"quotas:\n{good}  - {rule}\n")
    assert found.startswith("line 3: ")
    assert problem in found


def test_all_problems_are_reported_at_once() -> None:
    """A repeated entity, an unknown key of the file, a wrong number."""
    text = "quotas:\n  - {user: a, request_percentage: 1}\n  - {user: a, request_percentage: x}\n  - {user: a, request_percentage: 2}\nmore: 1\n"
    assert problems(text) == [
        "line 5: unknown key 'more'; known: quotas",
        "line 3: 'request_percentage' must be a plain number",
        "line 4: user a is there already in line 2",
    ]


def test_a_list_inside_another_document_is_read_the_same_way() -> None:
    """Such as candidates of a what-if; the caller collects the problems."""
    document = load("- 1\n- {user: a, request_percentage: 0}\n", "x")
    found: list[str] = []
    assert rules_of(document, found) == QuotaSet()
    assert [problem[:7] for problem in found] == ["line 1:", "line 2:"]
    assert rules_of(load("a: 1", "x"), found) == QuotaSet()
    assert found[2] == "line 1: expected a list of quotas"


@given(quota_sets)
def test_what_is_written_is_read_back(quotas: QuotaSet) -> None:
    """Whatever the names are."""
    text = quotas_yaml(quotas)
    assert quotas_in(load(text, "x"), "x") == quotas


@given(names)
def test_a_quoted_name_is_one_printable_line_and_the_same_for_every_reader(name: str) -> None:
    """Nothing of it can break the file, the terminal or the meaning of YAML 1.1."""
    assert quoted(name).isprintable()
    assert yaml.safe_load(f"user: {quoted(name)} # x") == {"user": name}


def test_a_file_reads_as_people_would_write_it() -> None:
    """Sorted, names in quotes, defaults not, whole numbers without a fraction; where there are no quotas the file says it."""
    assert quotas_yaml(QuotaSet()) == "quotas: []\n"
    quotas = QuotaSet(
        {
            QuotaEntity("alice", DEFAULT): {"request_percentage": 50.5, "producer_byte_rate": 1048576.0},
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
