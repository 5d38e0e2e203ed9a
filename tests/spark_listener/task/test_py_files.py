"""The zip works by itself, on Python 3.8 as on this one, and beside an installed quotascope."""

import ast
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from tests.spark_listener.task.old_python import VARIABLE, PythonMissing, old_python, pythons

import quotascope.clients.accounting
import quotascope.spark_listener.task
from quotascope.spark_listener.task.parent import give_way
from quotascope.spark_listener.task.py_files import HOME, write_py_files

USE = """
import sys
sys.path.insert(1, sys.argv[1])
from quotascope.clients.accounting import ThrottleAccount, confluent_kafka_config
from quotascope.spark_listener.task import throttle_scope
from quotascope.spark_listener.task import note, worker
from quotascope.spark_listener.task.worker import TaskScope
import pickle, traceback


class Task:
    stageId = attemptNumber = taskAttemptId = lambda self: 5
    getLocalProperty = lambda self, key: None


with throttle_scope() as account:
    account.client("alice", "etl", "write").throttled(1)
here = worker.PythonWorker(None)
try:
    with TaskScope(here, Task()) as account:
        confluent_kafka_config({}, account, side="write")
        account.client("alice", "etl", "write").throttled(7)
        raise KeyError("no")
except KeyError:
    found = note.read(traceback.format_exc(), note.AttemptKey(5, 5, 5))
assert [each.throttled_ms for each in found.totals] == [7, 0], found
assert pickle.loads(pickle.dumps(here._counter))[0] == 1
ours = {name: sys.modules[name].__file__ for name in sys.modules if name.startswith("quotascope.")}
print(sorted(name for name, file in ours.items() if file and file.startswith(sys.argv[1])))
"""
BESIDE = """
import quotascope.spark_listener.task, quotascope.clients.accounting, quotascope.clients.reporting
from quotascope.clients import Connection
print(quotascope.spark_listener.task.__file__, quotascope.clients.accounting.__file__, Connection.__module__)
"""


def run(python: str, code: str, *arguments: str) -> str:
    process = subprocess.run(
        [python, "-IS", "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.zip"
    write_py_files(path)
    return path


def test_it_holds_what_tasks_need(archive: Path, tmp_path: Path) -> None:
    """
    The zip holds both packages without parents' code, and the driver's number if there is one.

    The same content is the same file: entries have the first time that a zip can name.
    """
    packed = zipfile.ZipFile(archive)
    folders = {name.rpartition("/")[0] for name in packed.namelist() if not name.endswith("/")}
    parents = {"quotascope/clients", "quotascope/spark_listener"}
    assert folders == {*parents, "quotascope/clients/accounting", "quotascope/spark_listener/task"}
    assert "quotascope/clients/accounting/confluent.py" in packed.namelist()
    assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    again, numbered = tmp_path / "again.zip", tmp_path / "numbered.zip"
    write_py_files(again)
    assert again.read_bytes() == archive.read_bytes()
    write_py_files(numbered, accumulator=4)
    with_number = zipfile.ZipFile(numbered)
    assert with_number.read(f"{HOME}.py") == b"ACCUMULATOR = 4\n"
    assert {entry.date_time for entry in with_number.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("python", pythons())
def test_it_needs_nothing_of_ours(python: str, archive: Path) -> None:
    """Imports, counts and notes work from the zip alone, in a Python without Spark and site-packages."""
    loaded = run(python, USE, str(archive))
    assert "quotascope.spark_listener.task.throttles" in loaded
    assert "quotascope.clients.accounting.account" in loaded


def test_only_a_real_old_python_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Python under the old one's name is not used, and a named one must exist."""
    impostor = tmp_path / "python3.8"
    impostor.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert old_python() is None
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(PythonMissing, match=VARIABLE):
        old_python()


AGAIN = """
import sys, zipfile
sys.path.insert(1, sys.argv[1])
from quotascope.spark_listener.task import py_files
py_files.write_py_files(sys.argv[2], accumulator=4)
print(zipfile.ZipFile(sys.argv[2]).namelist())
"""


def test_a_driver_that_has_it_from_the_zip_sends_its_number(archive: Path, tmp_path: Path) -> None:
    """A driver that runs from the zip sends tasks its number only, as they have the zip, too."""
    names = run(sys.executable, AGAIN, str(archive), str(tmp_path / "again.zip"))
    assert names.strip() == f"['{HOME}.py']"


def installed(tmp_path: Path) -> str:
    """Return code that installs the package as a wheel does."""
    repository = Path(quotascope.spark_listener.task.__file__).parents[2]
    for room in ("clients", "metrics", "spark_listener"):
        shutil.copytree(repository / room, tmp_path / "site" / "quotascope" / room)
    return f"sys.path.append({str(tmp_path / 'site')!r})"


def editable(tmp_path: Path) -> str:
    """Return code that installs the package as setuptools does for developers: a finder that is asked last."""
    rooms = installed(tmp_path).partition("(")[2].rstrip(")")
    return f"""
from importlib.machinery import PathFinder
class Editable:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        folder, _, room = name.rpartition(".")
        return PathFinder.find_spec(name, [{rooms} + "/quotascope"]) if folder == "quotascope" else None
sys.meta_path.append(Editable)
"""


@pytest.mark.parametrize("install", [installed, editable])
def test_an_installed_quotascope_stays_whole(archive: Path, tmp_path: Path, install: Callable[[Path], str]) -> None:
    """The installed package is found instead of the one in two zips, and everything beside it can be imported."""
    paths = [shutil.copy(archive, tmp_path / f"{number}.zip") for number in range(2)]
    code = f"import sys; sys.path[1:1] = sys.argv[1:]\n{install(tmp_path)}\n{BESIDE}"
    task, accounting, connection = run(sys.executable, code, *map(str, paths)).split()
    assert Path(task).is_relative_to(tmp_path / "site")
    assert Path(accounting).is_relative_to(tmp_path / "site")
    assert connection == "quotascope.clients.security"


@pytest.mark.parametrize("module", [True, False])
def test_an_installed_package_takes_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, module: bool) -> None:
    """The package gives its code and its folder; a folder without a module is none."""
    archive, site = tmp_path / "archive", tmp_path / "site"
    outer, inner = ModuleType("outer"), ModuleType("outer.inner")
    outer.__path__ = [str(archive), str(site)]
    monkeypatch.setitem(sys.modules, "outer", outer)
    inner.__file__, inner.__path__ = str(archive / "inner" / "__init__.py"), [str(archive / "inner")]
    (site / "inner").mkdir(parents=True)
    if module:
        (site / "inner" / "__init__.py").write_text("found = __file__")
    give_way(inner)
    place = (site if module else archive) / "inner"
    assert inner.__path__ == [str(place)]
    assert getattr(inner, "found", inner.__file__) == str(place / "__init__.py")


@pytest.mark.parametrize("package", [quotascope.spark_listener.task, quotascope.clients.accounting])
def test_it_needs_no_newer_python(package: ModuleType) -> None:
    """Vermin knows which version of Python brought each part of the language and of its library."""
    vermin = shutil.which("vermin", path=str(Path(sys.executable).parent))
    assert vermin, "vermin is not installed"
    command = [vermin, "--no-tips", "--violations", "--target=3.8-", *package.__path__]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout


class Subscripts(ast.NodeVisitor):
    """A visitor that finds `Callable[…]` and its like used as values, which Python 3.8 does not support."""

    def __init__(self, tree: ast.Module) -> None:
        self.generic = {"dict", "frozenset", "list", "set", "tuple", "type"}
        self.found: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module != "typing":
                self.generic |= {alias.name for alias in node.names}
        self.visit(tree)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for child in (*node.decorator_list, *node.args.defaults, *node.body):
            self.visit(child)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self.generic:
            self.found.append(ast.unparse(node))
        self.generic_visit(node)


def test_it_makes_no_types_that_old_pythons_have_not(archive: Path) -> None:
    """The code creates no types that old Pythons lack, which vermin does not see."""
    packed = zipfile.ZipFile(archive)
    modules = [name for name in packed.namelist() if name.endswith(".py")]
    subscripts = {name: Subscripts(ast.parse(packed.read(name))).found for name in modules}
    assert {name: lines for name, lines in subscripts.items() if lines} == {}
    assert Subscripts(ast.parse("from x import Y\ndef f(a: Y[int]): Y[str]")).found == ["Y[str]"]
