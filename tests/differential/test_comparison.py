"""Comparisons can fail; this needs no Java."""

import pytest
from tests.differential.comparison import Difference, Operation, Replay, Twin, compare
from tests.differential.wire import Word, bits, readable, tokens


class Sum(Twin):
    """A side that adds, or that forgets to add the double of its earlier arguments."""

    def __init__(self, *, forgetful: bool) -> None:
        super().__init__()
        self._forgetful = forgetful
        self._added: set[int] = set()
        self._total = 0.0

    def _op_add(self, value: int) -> None:
        if not (self._forgetful and value / 2 in self._added):
            self._total += value
        self._added.add(value)

    def _op_total(self) -> str:
        return bits(self._total)


class OtherSide:
    """A forgetful sum at the other end of a pipe."""

    def send(self, lines: list[str]) -> None:
        twin = Sum(forgetful=True)
        self._answers = ["ok"]
        for verb, _, *arguments in (line.split(" ") for line in lines[1:]):
            answer = getattr(twin, f"_op_{verb}")(*map(int, arguments))
            self._answers.append(answer or "ok")

    def receive(self) -> list[str]:
        return self._answers


def _replay(*values: int) -> Replay:
    operations = [Operation("add", 0, (value,)) for value in values]
    return Replay("new sum", lambda: Sum(forgetful=False), (*operations, Operation("total", 0)))


def test_equal_answers_are_counted() -> None:
    """Sides that agree have compared as many operations as there were."""
    assert compare(OtherSide(), _replay(3, 5, 7)) == 4


def test_a_difference_is_raised_short() -> None:
    """The error has only those of a thousand operations that the difference needs, and both answers."""
    values = [2 * value + 1 for value in range(1000)]
    values[100], values[900] = 501, 1002
    with pytest.raises(Difference) as caught:
        compare(OtherSide(), _replay(*values))
    assert caught.value.replay.operations == _replay(501, 1002).operations
    assert caught.value.index == 3
    assert "Kafka: 501.0" in str(caught.value)
    assert "ours: 1503.0" in str(caught.value)


def test_an_error_of_ours_is_a_difference() -> None:
    """An error of our engine is an answer that the other side never gives."""
    broken = Replay("new sum", lambda: Sum(forgetful=False), (Operation("add", 0),))
    assert broken.answers()[1].startswith("our engine failed: TypeError")


def test_arguments_become_tokens() -> None:
    """Every kind of argument has a form that survives the pipe exactly."""
    arguments = (Word("a"), "é b", 1.0, -0.0, float("nan"), 7, True, None, ((1, 2), ()))
    assert " ".join(tokens(*arguments)) == ("a .c3a92062 3ff0000000000000 8000000000000000 7ff8000000000000 7 1 - 1 2")


def test_answers_are_made_readable() -> None:
    """Texts and doubles of an answer are decoded for people."""
    assert readable("[.61/.c3a9:3ff8000000000000:-]") == "['a'/'é':1.5:-]"
