from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import bcrypt
import pytest
from pydantic import SecretStr
from tests.exporter.web.serving import HASH, PASSWORD

from quotascope.exporter.web.passwords import Passwords, TooManyLogins
from quotascope.exporter.web.places import network_of

OTHER = "$2b$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
USERS = {"alice": SecretStr(HASH), "bob": SecretStr(OTHER)}
RIGHT = PASSWORD.encode()


async def guesses(store: Passwords, number: int = 1) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.create_task(accept(store, password=b"x")) for _ in range(number)]
    await asyncio.sleep(0)
    return tasks


class Counted:
    """Stands before bcrypt, notes what is checked, and can be held up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hashes: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self._real = bcrypt.checkpw
        monkeypatch.setattr(bcrypt, "checkpw", self)

    def __call__(self, password: bytes, hashed: bytes) -> bool:
        self.hashes.append(hashed.decode())
        self.go.wait(60)
        return self._real(password, hashed)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


async def accept(store: Passwords, user: str = "alice", password: bytes = RIGHT, address: str = "10.0.0.1") -> bool:
    return await store.accept(USERS, user, password, address)


@pytest.mark.parametrize("prefix", ["$2a$", "$2b$", "$2y$"])
async def test_each_kind_of_hash(prefix: str) -> None:
    """Hashes that begin with $2y$, $2a$ or $2b$ are all accepted."""
    users = {"alice": SecretStr(prefix + HASH[4:])}
    assert await Passwords().accept(users, "alice", RIGHT, "")
    assert not await Passwords().accept(users, "alice", b"", "")


async def test_a_right_password_is_checked_once(checked: Counted) -> None:
    """A right password is checked by bcrypt once, and a wrong one each time."""
    store = Passwords()
    assert [await accept(store) for _ in range(3)] == [True] * 3
    assert checked.hashes == [HASH]
    assert [await accept(store, password=b"wrong") for _ in range(2)] == [False] * 2
    assert checked.hashes == [HASH] * 3
    assert await accept(store)
    assert len(checked.hashes) == 3


async def test_the_password_is_not_kept(checked: Counted) -> None:
    """The memory holds a digest under a key of this process."""
    passwords, other_passwords = Passwords(), Passwords()
    assert await accept(passwords)
    assert await accept(other_passwords)
    assert len(checked.hashes) == 2
    assert set(passwords._right) == {"alice"}
    assert RIGHT not in passwords._right["alice"]
    assert passwords._right != other_passwords._right


async def test_a_changed_hash_is_checked_again(checked: Counted) -> None:
    """A password that was taken away is of no use any more, and a user that is gone is forgotten."""
    store = Passwords()
    assert await accept(store)
    assert not await store.accept({"alice": SecretStr(OTHER)}, "alice", RIGHT, "")
    assert not await store.accept({"bob": SecretStr(OTHER)}, "alice", RIGHT, "")
    assert checked.hashes == [HASH, OTHER, OTHER]
    assert await store.accept({"carol": SecretStr(HASH)}, "carol", RIGHT, "")
    assert set(store._right) == {"carol"}


async def test_unknown_users_cost_as_much_as_known_ones(checked: Counted) -> None:
    """An unknown user's password is checked against the same hash each time, and never accepted."""
    store = Passwords()
    unknown = [f"unknown-{number}" for number in range(16)]
    for password in (RIGHT, b"x"):
        assert [await accept(store, name, password, name) for name in unknown] == [False] * 16
    assert set(checked.hashes) == {HASH, OTHER}
    assert checked.hashes[16:] == checked.hashes[:16]


async def test_long_passwords_and_odd_bytes() -> None:
    """Passwords beyond bcrypt's 72 bytes, with NUL or without an encoding are no error."""
    for password in (RIGHT * 100, b"\0", b"\xff" * 72, b""):
        assert not await accept(Passwords(), password=password)


async def test_few_wait_for_a_check(checked: Counted) -> None:
    """Passwords are checked one at a time, and a limited number waits, of one address and in all."""
    store = Passwords(lambda number: number - 1)  # the last that came is drawn
    checked.go.clear()
    checking = await guesses(store)
    of_one = await guesses(store, 4)
    with pytest.raises(TooManyLogins):
        await accept(store)
    other_logins = [asyncio.create_task(accept(store, address=f"10.0.1.{number}")) for number in range(12)]
    await asyncio.sleep(0)
    assert len(store._turns._waiting) == 16
    other_logins.append(asyncio.create_task(accept(store, address="10.0.2.1")))
    crowded = of_one.pop()  # one of the address with the most gives way
    with pytest.raises(TooManyLogins):
        await crowded
    assert len(checked.hashes) <= 1
    checked.go.set()
    assert await asyncio.gather(*checking, *of_one) == [False] * 4
    assert await asyncio.gather(*other_logins) == [True] * 13
    assert checked.hashes == [HASH] * 5  # the first of the others spares the rest
    assert not store._turns._waiting


async def test_wrong_passwords_keep_no_right_one_out(checked: Counted) -> None:
    """A right password from another address is checked next, though four addresses send wrong ones without end."""
    store = Passwords()
    guessing = True

    async def guess(address: str) -> bool:
        is_accepted = False
        while guessing:
            with suppress(TooManyLogins):
                is_accepted |= await accept(store, password=b"x", address=address)
            await asyncio.sleep(0)
        return is_accepted

    wrong = [asyncio.create_task(guess(f"10.0.0.{number % 4}")) for number in range(32)]
    while len(checked.hashes) < 8:  # each address has been wrong  # noqa: ASYNC110
        await asyncio.sleep(0)
    checks_before = len(checked.hashes)
    assert await accept(store, address="10.9.9.9")
    assert len(checked.hashes) <= checks_before + 2  # the one under way, and its own
    guessing = False
    assert await asyncio.gather(*wrong) == [False] * 32


async def test_guesses_from_the_same_address_keep_no_right_password_out(checked: Counted) -> None:
    """Behind one proxy, chance decides which attempt gives way and which is checked next."""
    draws = iter([0, 4, 1])
    store = Passwords(lambda _most: next(draws, 0))
    checked.go.clear()
    checking = await guesses(store)
    wrong = await guesses(store, 4)
    with pytest.raises(TooManyLogins):
        await accept(store)
    right = asyncio.create_task(accept(store))
    done = await asyncio.wait({right, *wrong}, return_when="FIRST_COMPLETED")
    assert done[0] == {wrong[1]}
    assert isinstance(wrong[1].exception(), TooManyLogins)
    checked.go.set()
    assert await right
    await asyncio.gather(*checking, *wrong, return_exceptions=True)


def test_what_counts_as_one_address() -> None:
    """All addresses that a customer can choose from count as one: with IPv6, a network of 64 bits."""
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1")
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("fe80::1%eth0") == network_of("fe80::2%eth0")
    assert network_of("") == ""


async def test_what_is_remembered_of_addresses_is_bounded(checked: Counted) -> None:
    """A right password clears an address's count, and no number of addresses fills the memory."""
    store = Passwords()
    for _ in range(20):
        await accept(store, password=b"x")
    assert dict(store._turns._wrong) == {"10.0.0.1": 16}
    assert await accept(store)
    assert not store._turns._wrong
    for number in range(5_000):
        store._turns.record(str(number), right=False)
    assert len(store._turns._wrong) == 4096
    assert len(checked.hashes) == 21


async def test_a_request_that_is_given_up_gives_its_turn_back(checked: Counted) -> None:
    """A check whose request is given up, waiting or running, keeps no other waiting."""
    store = Passwords()
    checked.go.clear()
    tasks = await guesses(store, 3)
    for task in tasks:
        task.cancel()
    last_login = asyncio.create_task(accept(store))
    await asyncio.gather(*tasks, return_exceptions=True)
    checked.go.set()
    assert await last_login


async def test_a_known_password_does_not_wait(checked: Counted) -> None:
    """Prometheus is let in while others try out passwords."""
    store = Passwords()
    assert await accept(store)
    checked.go.clear()
    (trying,) = await guesses(store)
    assert await accept(store)
    assert not trying.done()
    checked.go.set()
    assert not await trying
