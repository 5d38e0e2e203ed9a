"""What happens where a version of Spark cannot be had."""

import shutil
from pathlib import Path

import pytest
from tests.spark.provision import SparkMissing, installed, main, provision
from tests.spark.versions import CONNECTOR, folder


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds nothing, and a pip that reaches nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/java")
    return tmp_path


@pytest.mark.usefixtures("empty_cache")
def test_missing_version_says_what_to_run() -> None:
    """A test that needs it does not end in an import error."""
    with pytest.raises(SparkMissing, match="run `make spark`"):
        installed(CONNECTOR)


def test_failed_installation_leaves_nothing(empty_cache: Path) -> None:
    """What pip says is shown, and the next run begins anew."""
    with pytest.raises(SparkMissing, match=f"could not install pyspark=={CONNECTOR}"):
        provision(CONNECTOR)
    assert [*(empty_cache / "quotascope").iterdir()] == []


@pytest.mark.usefixtures("empty_cache")
def test_command_fails_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """`make spark` ends with the reason, not with a traceback."""
    assert main([CONNECTOR]) == 1
    assert capsys.readouterr().err.startswith("provision: pip could not install")


def test_installed_version_is_not_installed_again(
    empty_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is complete is only named."""
    (folder(CONNECTOR) / "pyspark" / "bin").mkdir(parents=True)
    assert main([CONNECTOR]) == 0
    assert capsys.readouterr().out.startswith(str(empty_cache))
