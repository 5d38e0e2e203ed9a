from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import SecretStr
from tests.exporter.web.serving import HASH, PASSWORD

from quotascope.exporter.web import passwords
from quotascope.exporter.web.passwords import Passwords, TooManyLogins

OTHER = "$2b$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
USERS = {"alice": SecretStr(HASH), "bob": SecretStr(OTHER)}
RIGHT = PASSWORD.encode()


class Counted:
    """Stands before bcrypt, notes what is checked, and can be held up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hashes: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self._real = passwords._matches
        monkeypatch.setattr(passwords, "_matches", self)

    def __call__(self, password: bytes, hashed: SecretStr) -> bool:
        """Check, when allowed to."""
        self.hashes.append(hashed.get_secret_value())
        self.go.wait(60)
        return self._real(password, hashed)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """What bcrypt is asked."""
    return Counted(monkeypatch)


async def accept(
    store: Passwords,
    user: str = "alice",
    password: bytes = RIGHT,
    address: str = "10.0.0.1",
) -> bool:
    """Whether these two are let in."""
    return await store.accept(USERS, user, password, address)


@pytest.mark.parametrize("prefix", ["$2a$", "$2b$", "$2y$"])
async def test_each_kind_of_hash(prefix: str) -> None:
    """Htpasswd writes $2y$, others $2a$ or $2b$: they mean the same."""
    users = {"alice": SecretStr(prefix + HASH[4:])}
    assert await Passwords().accept(users, "alice", RIGHT, "")
    assert not await Passwords().accept(users, "alice", b"", "")


async def test_a_right_password_is_checked_once(checked: Counted) -> None:
    """Every scrape after the first one costs nothing; a wrong one always does."""
    store = Passwords()
    assert [await accept(store) for _ in range(3)] == [True] * 3
    assert checked.hashes == [HASH]
    assert [await accept(store, password=b"wrong") for _ in range(2)] == [False] * 2
    assert checked.hashes == [HASH] * 3
    assert await accept(store)
    assert len(checked.hashes) == 3


async def test_the_password_is_not_kept(checked: Counted) -> None:
    """What is remembered is a digest under a key of this process."""
    one, other = Passwords(), Passwords()
    assert await accept(one)
    assert await accept(other)
    assert len(checked.hashes) == 2
    assert set(one._right) == {"alice"}
    assert RIGHT not in one._right["alice"]
    assert one._right != other._right


async def test_a_changed_hash_is_checked_anew(checked: Counted) -> None:
    """A password that was taken away is of no use any more, and a user that is gone is forgotten."""
    store = Passwords()
    assert await accept(store)
    assert not await store.accept({"alice": SecretStr(OTHER)}, "alice", RIGHT, "")
    assert not await store.accept({"bob": SecretStr(OTHER)}, "alice", RIGHT, "")
    assert checked.hashes == [HASH, OTHER, OTHER]
    assert await store.accept({"carol": SecretStr(HASH)}, "carol", RIGHT, "")
    assert set(store._right) == {"carol"}


async def test_unknown_users_cost_as_much_as_known_ones(checked: Counted) -> None:
    """The hash of somebody is checked, always the same for the same name, and never lets in."""
    store = Passwords()
    strangers = [f"stranger-{number}" for number in range(16)]
    first = [await accept(store, name) for name in strangers]
    assert first == [False] * 16
    once = list(checked.hashes)
    assert set(once) == {HASH, OTHER}
    await asyncio.gather(*(accept(store, name, b"x", name) for name in strangers))
    assert checked.hashes[16:] == once


async def test_long_passwords_and_odd_bytes() -> None:
    """Bcrypt looks at 72 bytes; neither more of them, nor NUL, nor what is no text, is an error."""
    for password in (RIGHT * 100, b"\0", b"\xff" * 72, b""):
        assert not await accept(Passwords(), password=password)


async def test_few_wait_for_a_check(checked: Counted) -> None:
    """One is checked at a time; one address can take some of the places, and all addresses together so many."""
    store = Passwords()
    checked.go.clear()
    of_one = [asyncio.create_task(accept(store, password=b"x")) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyLogins):
        await accept(store)
    others = [
        asyncio.create_task(accept(store, address=f"10.0.1.{number}"))
        for number in range(12)
    ]
    await asyncio.sleep(0)
    with pytest.raises(TooManyLogins):
        await accept(store, address="10.0.2.1")
    assert len(checked.hashes) <= 1
    checked.go.set()
    assert await asyncio.gather(*of_one) == [False] * 4
    assert await asyncio.gather(*others) == [True] * 12
    assert checked.hashes == [HASH] * 5  # the first of the others spares the rest
    assert not store._waiting


async def test_who_is_known_does_not_wait(checked: Counted) -> None:
    """Prometheus is let in while others try out passwords."""
    store = Passwords()
    assert await accept(store)
    checked.go.clear()
    trying = asyncio.create_task(accept(store, password=b"x", address="10.9.9.9"))
    await asyncio.sleep(0)
    assert await accept(store)
    assert not trying.done()
    checked.go.set()
    assert not await trying
