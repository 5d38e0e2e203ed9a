"""What cannot be meant is refused, and never looks like a difference."""

import pytest
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complaints stand on one line."""
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.parametrize(
    ("words", "code"), [(["--nix", "f"], 1), ([], 1), (["f", "--json", "--kafka-configs"], 1), (["--help"], 0)]
)
def test_a_misused_diff_does_not_end_as_if_there_were_differences(run: Run, words: list[str], code: int) -> None:
    """Its exit code 2 means that they differ; a CI job has to distinguish the two."""
    assert run("quotas", "diff", *words)[0] == code


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
def test_a_misuse_is_explained(run: Run, words: list[str], complaint: str) -> None:
    """Before anything is asked of Kafka."""
    code, _, err = run("quotas", *words, "--bootstrap-servers", "127.0.0.1:1")
    assert code == 2
    assert complaint in err
