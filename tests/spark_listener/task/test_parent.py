import sys
from pathlib import Path
from types import ModuleType

import pytest

from quotascope.spark_listener.task.parent import give_way


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where the package `outer` looks for what is in it, in that order."""
    folders = [tmp_path / name for name in ("archive", "site")]
    outer = ModuleType("outer")
    outer.__path__ = [str(each) for each in folders]
    monkeypatch.setitem(sys.modules, "outer", outer)
    return folders


def inner(folder: Path) -> ModuleType:
    """The package in it, as it is while its module runs."""
    package = ModuleType("outer.inner")
    package.__file__ = str(folder / "inner" / "__init__.py")
    package.__path__ = [str(folder / "inner")]
    return package


def test_an_installed_package_takes_its_place(folders: list[Path]) -> None:
    """With its code and its folder."""
    archive, site = folders
    (site / "inner").mkdir(parents=True)
    (site / "inner" / "__init__.py").write_text("found = __file__")
    package = inner(archive)
    give_way(package)
    assert package.found == str(site / "inner" / "__init__.py")
    assert package.__path__ == [str(site / "inner")]


def test_without_one_it_stays_as_it_is(folders: list[Path]) -> None:
    """A folder without a module is none."""
    archive, site = folders
    (site / "inner").mkdir(parents=True)
    package = inner(archive)
    give_way(package)
    assert package.__path__ == [str(archive / "inner")]
    assert package.__file__ == str(archive / "inner" / "__init__.py")
