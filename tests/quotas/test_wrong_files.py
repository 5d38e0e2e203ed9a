"""
Files that are wrong.

Each comment in them is the problem that is reported for its line, or how it begins, up to `…`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from quotascope.quotas import InvalidQuotas, load_file, read_quotas
from quotascope.quotas.candidates import read_candidates

QUOTAS = r"""
more: 1  # unknown key 'more'; known: quotas
quotas:
  - {user: z, request_percentage: 1}
  - {user: z, request_percentage: 2}  # user z is there already in line 4
  - [a]  # expected keys and values, such as `user:`
  - {producer_byte_rate: 1}  # needs a user, a client-id, both, or an ip alone
  - {ip: 1.2.3.4, user: a, connection_creation_rate: 1}  # needs a user, a client-id, both, or an ip alone
  - {user: alice}  # user alice has no quota
  - {user: 123, request_percentage: 1}  # user must be text, such as "123"
  - {user: yes, request_percentage: 1}  # user must be text, such as "yes"
  - {user: , request_percentage: 1}  # user must be text, such as <default>
  - {user: [a], request_percentage: 1}  # user must be text, such as <default>
  - {user: {name: 1}, request_percentage: 1}  # user must be text, such as "1"
  - {user: '', request_percentage: 1}  # user "": the name of 'user' is empty
  - {user: "\ud800", request_percentage: 1}  # user contains an incomplete Unicode character
  - {user: a, producer_byte_rate: '1'}  # 'producer_byte_rate' must be a plain number
  - {user: a, producer_byte_rate: 0100}  # 'producer_byte_rate' must be a plain number
  - {user: a, producer_byte_rate: .nan}  # 'producer_byte_rate' must be a plain number
  - {user: a, producer_byte_rate: [1]}  # 'producer_byte_rate' must be a plain number
  - {user: a, producer_byte_rate: Infinity}  # user a: producer_byte_rate is too large for LONG…
  - {user: a, producer_byte_rate: 0}  # user a: producer_byte_rate must be greater than 0…
  - {user: a, producer_byte_rate: 1.5}  # user a: producer_byte_rate must be a whole number…
  - {user: a, producer_byte_rate: 1e30}  # user a: producer_byte_rate is too large for LONG…
  - {user: a, producer_byterate: 1}  # user a: 'producer_byterate' is none of this entity's keys: producer_byte_rate…
  - {usr: alice}  # unknown key 'usr'; did you mean 'user'?
  - {color: red}  # unknown key 'color'; known: user, client-id, ip and quota keys
  - {user: a, connection_creation_rate: 1}  # user a: 'connection_creation_rate' is none of this entity's keys…
  - {ip: not an address, connection_creation_rate: 1}  # ip "not an address": 'not an address' is not an address…
  - {ip: 1.2.3.4, request_percentage: 1}  # ip 1.2.3.4: 'request_percentage' is none of this entity's keys…
"""

CANDIDATES = """
windows: {num: 0}  # a quota needs at least 1 window of at least 1 s, not 0 of 1 s
controller-windows: {num: 1.5}  # `controller-windows` takes whole numbers
quots: 3  # unknown key 'quots'; did you mean 'quotas'?
candidates:
  - 3  # expected keys and values, such as `name:`
  - {name: ' '}  # `name` must be a text that is not empty
  - nam: now  # unknown key 'nam'; did you mean 'name'?  # `name` must be a text that is not empty
  - {name: a}
  - {name: a}  # the name 'a' is there already in line 9
  - name: half
    mutations: x  # `mutations` must be token-bucket or burst-spreading
    quotas: [{user: alice, producer_byte_rate: -5}]  # user alice: producer_byte_rate must be greater than 0, not -5.0
    remove: [{user: bob, keys: [nonsense]}]  # user bob: 'nonsense' is none of this entity's keys: producer_byte_rate…
grid:
  - 3  # expected keys and values, such as `key:`
  - {user: a, key: consumer_byte_rate, values: []}  # `values` must be a list of numbers
  - {user: a, key: consumer_byte_rate, values: [1], from: 1}  # either `values` or `from`, not both
  - {user: a, key: consumer_byte_rate, values: [x]}  # 'consumer_byte_rate' must be a plain number
  - {user: a, key: consumer_byte_rate, values: [1.5]}  # user a: consumer_byte_rate must be a whole number, not 1.5
  - {user: a, key: k}  # `from` must be a plain number  # `to` must be a plain number  # `steps` must be a plain number
  - {user: a, key: k, from: 1000, to: 10, steps: 3}  # `from` must be above 0 and below `to`
  - {user: a, key: k, from: 1, to: .inf, steps: 3}  # `to` must be finite
  - {user: a, key: k, from: 1, to: 2, steps: 1}  # `steps` must be a whole number from 2 to 1000
  - {user: a, key: k, from: 1, to: 2, steps: .inf}  # `steps` must be a whole number from 2 to 1000
  - {user: a, key: k, from: 1, to: 2, steps: 3, scale: x}  # `scale` must be log or linear
"""

GRID = "{{name: n{0}, user: a, key: request_percentage, from: 1, to: 1000000, steps: 1000}}"
TOO_MANY = f"grid: [{', '.join(map(GRID.format, range(12)))}]  # more than 10000 candidates"
NOT_QUOTAS = "  # expected the key `quotas`"
TOO_LARGE = "  # a replay takes at most 10000 windows of at most 86400 s"


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (read_quotas, QUOTAS),
        (read_quotas, NOT_QUOTAS),
        (read_quotas, "rules: []" + NOT_QUOTAS),
        (read_quotas, "- user: a" + NOT_QUOTAS),
        (read_quotas, "quotas: {a: 1}  # expected a list of quotas"),
        (read_candidates, CANDIDATES),
        (read_candidates, TOO_MANY),
        (read_candidates, "  # there is no candidate; give `candidates:`"),
        (read_candidates, "- 1  # expected keys and values, such as `candidates:`"),
        (read_candidates, "candidates: 3  # `candidates` must be a list"),
        (read_candidates, "windows: 3  # `windows` needs num and size-seconds"),
        (read_candidates, "windows: {num: .inf}  # `windows` takes whole numbers"),
        (read_candidates, "windows: {num: 2000000000}" + TOO_LARGE),
        (read_candidates, "windows: {size-seconds: 86401}" + TOO_LARGE),
        (load_file, "a: 1\nb: [  # not valid YAML: expected the node content, but found '<stream end>'"),
        (
            load_file,
            (
                "a: 1\na: 2  # the key 'a' is there already in line 1\n"
                "b: {c: 1, c: 2}  # the key 'c' is there already in line 3\n"
                "a: 3  # the key 'a' is there already in line 1"
            ),
        ),
        (load_file, "a: &a {b: 1}\nc: {<<: *a, b: 2, b: 3}  # the key 'b' is there already in line 2"),
        (load_file, f"{'x' * 70}: 1\n{'x' * 70}: 2  # the key '{'x' * 60}' is there already in line 1"),
        (load_file, "a: 2026-13-45  # not valid YAML: this is no timestamp"),
        (load_file, "a: &x [*x]  # not valid YAML: this alias repeats too much, or what it is in"),
        (load_file, "a: !!python/object:os.system x  # not valid YAML: could not determine a constructor for the tag…"),
    ],
)
def test_all_problems_are_reported_with_their_lines(
    reader: Callable[[Path], object], text: str, tmp_path: Path
) -> None:
    """
    All problems are reported at once, in the order of lines.

    A good line among them is no problem, and nothing of the file is executed.
    """
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(InvalidQuotas) as caught:
        reader(path)
    lines = enumerate(text.splitlines(), start=1)
    expected_problems = [f"line {number}: {comment}" for number, line in lines for comment in line.split("  # ")[1:]]
    for problem, expected in zip(caught.value.problems, expected_problems, strict=True):
        assert problem == expected or (expected.endswith("…") and problem.startswith(expected[:-1]))
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a: \x00", "is not valid YAML: unacceptable character"),
        (b"a: \xff", "is not UTF-8 text (byte 3)"),
        (b"[" * 30 + b"]" * 30, "is not valid YAML: more than 20 levels"),
        (None, "cannot be read: No such file or directory"),
    ],
)
@pytest.mark.parametrize("reader", [load_file, read_quotas, read_candidates])
def test_a_file_that_cannot_be_read_is_reported_by_its_name(
    reader: Callable[[Path], object], data: bytes | None, problem: str, tmp_path: Path
) -> None:
    """The message has the name of a file that is missing, or is no text, or would need too deep a recursion."""
    path = tmp_path / "file.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InvalidQuotas) as caught:
        reader(path)
    assert str(caught.value).startswith(f"{path}: {problem}")
