from pathlib import Path

import pytest

from . import provision


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which nothing was fetched yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_jars_that_were_not_fetched_are_an_error_that_says_how() -> None:
    """A test that needs Kafka fails with the command to run instead of a stack trace of Java."""
    for folder in (provision.libs, provision.agents, provision.newest_libs):
        with pytest.raises(provision.ProvisioningError, match="run `make jars`"):
            folder()


def test_a_missing_program_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    empty_cache: Path,
) -> None:
    """Without Maven the command fails with one line and leaves nothing half done."""
    monkeypatch.setenv("PATH", "")
    assert provision.main() == 1
    assert (
        capsys.readouterr().err
        == "provision: `mvn` is missing: install Maven and a JDK 17 or newer\n"
    )
    assert not list((empty_cache / "quotascope").iterdir())


def test_what_was_fetched_is_not_fetched_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run needs no program and no network, and prints the folders."""
    monkeypatch.setenv("PATH", "")
    provision.folder().mkdir(parents=True)
    provision.newest_folder().mkdir()
    assert provision.main() == 0
    assert (
        capsys.readouterr().out
        == f"{provision.folder()}\n{provision.newest_folder()}\n"
    )
