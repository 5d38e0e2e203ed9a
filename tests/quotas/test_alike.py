"""Names that differ in their form only are found, whatever the name is; others are not."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.quotas.slips import SLIPS

from quotascope.quotas import Names, differences, oddities

OF_USERS = {"type"}
names = st.text(st.characters(categories=["L", "Nd"], include_characters="-_.: /=@#%"), min_size=1, max_size=20).filter(
    lambda name: name == name.strip() and "%" not in name
)


@given(names, st.sampled_from(sorted(SLIPS)), st.sampled_from(sorted(SLIPS)))
@example("\u0131", "swapped", "JMX's quotes")
@example("\u00aa", "twice", "zero width")
@example("\U0001d790", "twice", "twice")
def test_any_slip_of_a_name_leads_to_it(name: str, first_slip: str, second: str) -> None:
    """A name with one or two slips leads to the right one, and the difference has words."""
    for kind in ("user", "client-id"):
        if kind == "client-id" and OF_USERS & {first_slip, second}:
            continue
        between = SLIPS[first_slip](name)
        # a letter whose upper case is that of another one, such as the dotless i, makes another name at either slip
        assume(all(text.casefold() == text.upper().casefold() for text in (name, between)))
        slipped = SLIPS[second](between)
        similar = Names([name, "someone-else"], kind).similar(slipped)
        if slipped == name:
            assert similar == []
        else:
            assert similar == [name], (kind, slipped)
            assert differences(slipped, name, kind)


@given(names, names)
def test_another_name_is_no_slip(name: str, other: str) -> None:
    """A name with other letters is another name and no slip."""
    letters = [
        [char for char in unicodedata.normalize("NFKC", text.casefold()).casefold() if char.isalnum()]
        for text in (name, other)
    ]
    assume(sorted(letters[0]) != sorted(letters[1]))
    assume(not {"=", "@", ":"} & {*name, *other})
    for kind in ("user", "client-id"):
        assert Names([name], kind).similar(other) == []


@pytest.mark.parametrize(
    ("measured", "rule", "words"),
    [
        ("CN=app,OU=a b,O=Corp", "O=Corp, OU=a  b, CN=app", "order or spacing"),
        ("CN=app,OU=a,O=Corp", "User:cn=App,ou=a,o=corp", "upper and lower case"),
        ("CN=app,OU=a,O=Corp", "/O=Corp/OU=a/CN=app", "order or spacing"),
        ('CN="x, y",O=Corp', r"CN=x\, y,O=Corp", "order or spacing"),
        ("CN=app,O=Corp", "app", "other parts of the distinguished name"),
        ("CN=app,O=Corp", "CN=app", "other parts of the distinguished name"),
        ("app", "CN=app,O=Corp", "other parts of the distinguished name"),
        ("erin", "erin@CORP.EXAMPLE", "host and realm"),
        ("erin", "User:erin/host-1@CORP.EXAMPLE", "host and realm"),
        ("erin@CORP.EXAMPLE", "erin", "host and realm"),
        ("erin/host-1@CORP.EXAMPLE", "ERIN", "host and realm"),
        ("erin/host-1@CORP.EXAMPLE", "erin@CORP.EXAMPLE", "host and realm"),
    ],
)
def test_distinguished_names_and_principals(measured: str, rule: str, words: str) -> None:
    """Names of users are compared as distinguished names and principals, client-ids as plain texts."""
    assert Names([measured, "zoe", "CN=zoe,O=Corp"], "user").similar(rule) == [measured]
    assert any(words in difference for difference in differences(rule, measured, "user"))
    if rule != measured.upper():
        assert Names([measured], "client-id").similar(rule) == []


@pytest.mark.parametrize(
    ("measured", "rule"),
    [
        ("CN=app,OU=a,O=Corp", "CN=app,OU=b,O=Corp"),
        ("CN=app,O=Corp", "O=Corp"),
        ("erin@A.EXAMPLE", "erin@B.EXAMPLE"),
        ("erin/h1@A", "erin/h2@A"),
        ("team", "team/app"),
        ("user:", "User"),
    ],
)
def test_two_principals_that_share_a_part(measured: str, rule: str) -> None:
    """Two principals that share a part may both exist, and are no slip of each other."""
    assert Names([measured], "user").similar(rule) == []


def test_a_form_comes_before_a_part() -> None:
    """Names that differ only in their form are suggested before names with more parts."""
    assert Names(["erin", "ERIN", "erin@CORP"], "user").similar("Erin") == ["ERIN", "erin"]
    assert Names(["erin@CORP"], "user").similar("Erin") == ["erin@CORP"]


@pytest.mark.parametrize(
    "name", ["alice", "svc:team a", "CN=app, O=Corp", "100%", "a%zz", "é😀", "erin@CORP", "x" * 10_000, "my app/1=x,*?"]
)
def test_names_that_clients_have_are_not_odd(name: str) -> None:
    """Names with blanks, colons and percent signs, which clients have, are not odd."""
    assert oddities(name, "user") == []


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("User:a", "begins with User:"),
        ('"a b"', "quotes"),
        ("a%20b", "percent"),
        (" a", "blanks"),
        ("a\u200bb", "invisible"),
        ("a\u00a0b", "invisible"),
        ("e\u0301", "NFD"),
    ],
)  # fmt: skip
def test_odd_names(name: str, word: str) -> None:
    (oddity,) = oddities(name, "user")
    assert word in oddity
