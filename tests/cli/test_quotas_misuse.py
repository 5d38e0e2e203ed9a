"""What cannot be meant is refused, and never looks like a difference."""

import sys

import pytest

from quotascope.cli.main import main


def exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str]:
    """How a command ends, and what it complains of, without the frame around it."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(sys, "argv", ["quotascope", "quotas", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["diff"], ["diff", "--nix", "f"], ["diff", "f", "--json", "--kafka-configs"]],
)
def test_a_misused_diff_does_not_end_as_if_there_were_differences(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    """Its exit code 2 means that they differ; a CI job has to tell the two apart."""
    assert exit_code(monkeypatch, capsys, *words)[0] == 1


def test_help_of_diff_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no mistake to ask."""
    assert exit_code(monkeypatch, capsys, "diff", "--help")[0] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["set", "request_percentage=1"], "name the entity of the quota"),
        (["set", "--user", "a"], "say what to set"),
        (["set", "request_percentage", "--user", "a"], "is not KEY=VALUE"),
        (["set", "request_percentage=nan", "--user", "a"], "is not KEY=VALUE"),
        (["set", "a=1", "a=2", "--user", "a"], "is there twice"),
        (["set", "a=1", "--user", "a", "--default-user"], "exclude each other"),
        (["set", "a=1", "--user", ""], "--user is empty"),
        (["set", "a=1", "--user", "a", "--ip", "::1"], "cannot be combined"),
        (["set", "a=1", "--file", "f"], "--file takes neither"),
        (["set", "--default-ip", "--file", "f"], "--file takes neither"),
        (["set", "--file", "f", "--measure-only"], "--file takes neither"),
        (["set", "a=1", "--measure-only"], "--measure-only chooses the values"),
        (["set", "--measure-only", "--default-ip"], "for users and client-ids"),
        (["set", "a=1", "--user", "User:alice"], "principal alone: 'alice'"),
        (["set", "--measure-only", "--user", "User:al"], "principal alone: 'al'"),
        (["remove", "--user", "a"], "say which quotas"),
        (["remove", "a", "--all", "--user", "a"], "say which quotas"),
        (["export", "--format", "kafka-user"], "needs --strimzi-cluster"),
    ],
)
def test_a_misuse_is_explained(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    complaint: str,
) -> None:
    """Before anything is asked of Kafka."""
    code, told = exit_code(
        monkeypatch, capsys, *words, "--bootstrap-servers", "127.0.0.1:1"
    )
    assert code == 2
    assert complaint in told
