"""The folders at the top of the repository are what the wheel ships."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text())
SMALL = tomllib.loads((ROOT / "packaging" / "spark" / "pyproject.toml").read_text())
OF_SMALL = "_quotascope_spark"
"""The folder of the small distribution's files: no file belongs to both distributions."""
SETUPTOOLS = WHOLE["tool"]["setuptools"]
FOLDERS = sorted(SETUPTOOLS["package-dir"].values())


def test_every_package_is_declared() -> None:
    """A new subfolder with code is listed in pyproject.toml, or the wheel would miss it."""
    packages = {
        "quotascope." + ".".join(init.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert packages == set(SETUPTOOLS["packages"])


def test_the_small_distribution_is_a_part_of_the_whole() -> None:
    """Version, libraries, extra and the packages of its folders are those of the whole."""
    small, whole = SMALL["project"], WHOLE["project"]
    assert small["version"] == whole["version"]
    assert set(small["dependencies"]) < set(whole["dependencies"])
    for extra, needed in small["optional-dependencies"].items():
        assert needed == whole["optional-dependencies"][extra]
    ours = SMALL["tool"]["setuptools"]
    folders = tuple(name.removeprefix(f"{OF_SMALL}.") for name in ours["package-dir"])
    assert ours["packages"] == [
        f"{OF_SMALL}.{name}"
        for name in SETUPTOOLS["packages"]
        if name in folders or name.startswith(tuple(f"{folder}." for folder in folders))
    ]


def test_every_folder_has_its_link() -> None:
    """Type checkers and editors find each folder under its import name."""
    links = {link.name: link.resolve() for link in (ROOT / ".imports" / "quotascope").iterdir()}
    assert links == {folder: ROOT / folder for folder in FOLDERS}


def test_every_folder_is_typed() -> None:
    """Users' type checkers read our annotations only where py.typed stands."""
    assert [folder for folder in FOLDERS if not (ROOT / folder / "py.typed").exists()] == []


def test_no_module_imports_a_folder_by_its_bare_name() -> None:
    """No module imports ``metrics`` in place of ``quotascope.metrics``, which alone works once installed."""
    bare = re.compile(rf"^ *(?:from|import) (?:{'|'.join(FOLDERS)})\b.*", re.MULTILINE)
    modules = {
        path.relative_to(ROOT): path.read_text()
        for folder in (*FOLDERS, "benchmarks", "packaging", "tests", "tools")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path: found for path, text in modules.items() if (found := bare.findall(text))} == {}


def test_every_file_beside_the_code_is_in_the_wheel() -> None:
    """Templates, styles and scripts are named by a pattern of `package-data`, so that they are installed."""
    shipped = set()
    for package, patterns in SETUPTOOLS["package-data"].items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        shipped |= {file for pattern in patterns for file in folder.glob(pattern)}
    files = {
        file
        for folder in FOLDERS
        for kind in ("html", "css", "jar", "js", "md")
        for file in (ROOT / folder).rglob(f"*.{kind}")
    }
    assert files
    assert files <= shipped


def test_no_test_module_imports_another() -> None:
    """A module of tests can be read, moved and removed alone; what several use has a module of its own."""
    imports = re.compile(r"^ *(?:from|import) (tests\.[\w.]*\btest_\w+)", re.MULTILINE)
    others = {
        str(path.relative_to(ROOT)): modules
        for path in (ROOT / "tests").rglob("*.py")
        if (modules := {*imports.findall(path.read_text())} - {".".join(path.relative_to(ROOT).with_suffix("").parts)})
    }
    assert others == {}
