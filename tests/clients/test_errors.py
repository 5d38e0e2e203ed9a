import shlex

import pytest

from quotascope.clients import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    InvalidConnection,
    LibraryMissing,
    MutationThrottled,
    PermissionMissing,
    TlsFailed,
    UnsupportedByLibrary,
    errors,
)

HOSTILE = "x" * 20_000 + "\n\x1b[31m<script>\r\u2028"


@pytest.mark.parametrize(
    "error",
    [
        AdminRequestFailed("AlterClientQuotas", 42, HOSTILE),
        MutationThrottled("CreateTopics", 1_000, HOSTILE),
        AdminUnreachable(["broker-1:9092"], HOSTILE),
        AuthenticationFailed(HOSTILE, "PLAIN", HOSTILE),
        PermissionMissing(
            request="DescribeQuorum", operation="Describe", username=HOSTILE
        ),
    ],
)
def test_messages_are_short_lines_of_printable_text(error: ClientError) -> None:
    """What comes from outside can neither break a log line nor fill a disk."""
    assert str(error).isprintable()
    assert len(str(error)) < 800


def test_a_grant_is_safe_to_paste() -> None:
    """A user name cannot smuggle a command into the advice."""
    error = PermissionMissing(
        request="DescribeQuorum", operation="Describe", username="a; rm -rf /"
    )
    assert shlex.split(error.grant)[3] == "User:a; rm -rf /"


def test_a_grant_on_a_topic_names_it() -> None:
    """A name is quoted as a user's is."""
    error = PermissionMissing(
        request="CreateTopics", operation="Create", username="me", topic="a b"
    )
    assert shlex.split(error.grant)[-4:] == ["--operation", "Create", "--topic", "a b"]


def test_a_grant_without_a_known_user_leaves_a_gap() -> None:
    """A principal that comes from a certificate is for the reader to fill in."""
    error = PermissionMissing(
        request="DescribeQuorum", operation="Describe", username=None
    )
    assert "User:…" in error.grant


def test_the_tree_is_the_one_drawn() -> None:
    """Every class of the drawing exists, is exported and descends as drawn."""
    flat = {
        AdminRequestFailed, AdminTimeout, AdminUnreachable, AuthenticationFailed, InvalidConnection,
        LibraryMissing, PermissionMissing, UnsupportedByLibrary,
    }  # fmt: skip
    assert all(error.__base__ is ClientError for error in flat)
    assert TlsFailed.__base__ is AdminUnreachable
    assert MutationThrottled.__base__ is AdminRequestFailed
    assert errors.__doc__ is not None
    assert all(
        error.__name__ in errors.__doc__
        for error in {*flat, TlsFailed, MutationThrottled, ClientError}
    )
