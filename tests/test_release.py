"""Files that a release publishes: built, checked as a package index does, and installed where nothing else is."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

import pytest
import yaml
from tests.deploy.commands import ROOT
from tests.deploy.provision import tools

BIN = Path(sys.executable).parent
REPOSITORY = "https://example.org/kafka/quotascope"
OF_SMALL = "_quotascope_spark/"
"""Where the small distribution has its files."""
ATTACHED = """
from pyspark.sql import SparkSession
from quotascope.spark_listener import attach

quick = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
spark = SparkSession.builder.master("local[1]").config(map=quick).getOrCreate()
listener = attach(spark)
spark.range(10).collect()
listener.close()
print(listener.snapshot().events > 3)
spark.stop()
"""


def run(
    *command: str | Path, code: int = 0, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program; ``code`` is how it has to end."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(environ or {})})
    assert done.returncode == code, done.stdout + done.stderr
    return done


@dataclass(frozen=True, slots=True)
class Release:
    """The files of a release."""

    source: Path
    whole: Path
    small: Path


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Build the release from a copy of what git knows, as the workflow does: the wheel from the source distribution."""
    copy, made = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("release")
    listed = run("git", "-C", ROOT, "ls-files", "-z").stdout.strip("\0").split("\0")
    for name in listed:
        top = name.partition("/")[0]
        if top not in {"benchmarks", "docs", "tests"} and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    environ = {"PYTHONWARNINGS": "ignore", "QUOTASCOPE_PURE": "1", "QUOTASCOPE_REPOSITORY": f"{REPOSITORY}/"}
    build = (BIN / "uv", "build", "--out-dir", made)
    run(*build, copy, environ=environ)
    run(*build, "--wheel", copy / "packaging" / "spark", environ=environ)
    (source,) = made.glob("*.tar.gz")
    (whole,) = made.glob("quotascope-*.whl")
    (small,) = made.glob("quotascope_spark-*.whl")
    return Release(source, whole, small)


def installed(folder: Path, wheel: Path) -> Path:
    """Return the Python of a new environment with a wheel and its tested requirements, without a compiler."""
    python = folder / "bin" / "python"
    if not python.exists():
        run(BIN / "uv", "venv", "--python", sys.executable, folder)
    run(
        *(BIN / "uv", "pip", "install", "--python", python, "--only-binary", ":all:"),
        *("--constraint", ROOT / "constraints.txt", wheel),
    )
    run(BIN / "uv", "pip", "check", "--python", python)
    return python


@pytest.mark.real
def test_index_accepts_them(release: Release) -> None:
    """The index accepts the distributions, and the description has no relative link."""
    run(BIN / "twine", "check", "--strict", release.source, release.whole, release.small)
    with tarfile.open(release.source) as packed:
        (name,) = (name for name in packed.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
        file = packed.extractfile(name)
        assert file is not None
        described = message_from_string(file.read().decode())
    text = str(described.get_payload())
    links = re.findall(r"!?\[[^]]*]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    version = described["Version"]
    picture = f"{REPOSITORY}/raw/v{version}/docs/pictures/dashboard-overview.png"
    assert picture in links
    assert f"{REPOSITORY}/blob/v{version}/docs/start/start.md" in links
    assert f"Source, {REPOSITORY}" in described.get_all("Project-URL", [])


@pytest.mark.real
def test_limits_of_a_cluster_need_no_extra(release: Release, tmp_path: Path) -> None:
    """A plain installation asks the cluster, whose address is wrong here, and is not asked to install anything."""
    command = installed(tmp_path / "venv", release.whole).with_name("quotascope")
    for code, words in ((2, ["doctor"]), (1, ["quotas", "list"])):
        done = run(command, *words, "--bootstrap-servers", "127.0.0.1:9", code=code)
        assert "cannot reach Kafka at 127.0.0.1:9" in done.stdout + done.stderr
        assert "pip install" not in done.stdout + done.stderr


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_driver_needs_the_small_one_only(release: Release, tmp_path: Path) -> None:
    """The small wheel has files of the whole one, brings three libraries in 8 MB, and attaches to a real Spark."""
    with zipfile.ZipFile(release.small) as small, zipfile.ZipFile(release.whole) as all_:
        files = [name for name in small.namelist() if ".dist-info/" not in name]
        assert set(files).isdisjoint(all_.namelist())
        assert small.read("quotascope_spark.pth") == b"_quotascope_spark\n"
        names = [name.removeprefix(OF_SMALL) for name in files if name.startswith(OF_SMALL)]
        assert len(names) == len(files) - 1 > 100
        assert all(small.read(f"{OF_SMALL}{name}") == all_.read(name) for name in names)
        folders = tuple({"/".join(name.split("/")[:2]) + "/" for name in names})
        assert set(names) == {name for name in all_.namelist() if name.startswith(folders)}
    python = installed(tmp_path / "venv", release.small)
    listed = run(BIN / "uv", "pip", "freeze", "--python", python).stdout
    assert {line.partition("==")[0].partition(" @")[0] for line in listed.splitlines()} == {
        "librt", "orjson", "prometheus-client", "quotascope-spark",
    }  # fmt: skip
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    size = sum(each.stat().st_size for each in packages.rglob("*") if each.is_file())
    assert size < 8e6
    spark = tmp_path / "spark"
    spark.mkdir()
    for name in ("pyspark", "py4j"):
        (spark / name).symlink_to(next(Path(path, name) for path in sys.path if Path(path, name).is_dir()))
    done = run(python, "-c", ATTACHED, environ={"PYTHONPATH": str(spark), "PYSPARK_PYTHON": str(python)})
    assert done.stdout == "True\n", done.stderr


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("removed", "code", "command"),
    [
        ("quotascope-spark", "import quotascope.exporter, quotascope.spark_listener, quotascope.clients", "quotascope"),
        ("quotascope", "import quotascope.spark_listener, quotascope.clients, quotascope.metrics", ""),
    ],
)
@pytest.mark.parametrize("first", ["whole", "small"])
def test_one_is_removed_and_the_other_works(
    release: Release, tmp_path: Path, first: str, removed: str, code: str, command: str
) -> None:
    """Both wheels can be installed in any order, the whole one's files count, and either works without the other."""
    folder = tmp_path / "venv"
    wheels = [release.whole, release.small] if first == "whole" else [release.small, release.whole]
    for wheel in wheels:
        python = installed(folder, wheel)
    where = "import quotascope.metrics; print(quotascope.metrics.__file__)"
    assert "_quotascope_spark" not in run(python, "-c", where).stdout
    run(BIN / "uv", "pip", "uninstall", "--python", python, removed)
    run(python, "-c", code)
    for made in ("jar", "py-files"):
        run(python, "-m", "quotascope.spark_listener", made, tmp_path / made)
    assert ("_quotascope_spark" in run(python, "-c", where).stdout) is (removed == "quotascope")
    if command:
        run(python.with_name(command), "--help")


@pytest.mark.real
def test_linters_find_nothing_in_the_workflows() -> None:
    """Workflows have neither mistakes (actionlint) nor weaknesses that an attacker could use (zizmor)."""
    workflows = [*(ROOT / ".github" / "workflows").iterdir()]
    assert workflows
    run(tools() / "actionlint", *workflows)
    run(BIN / "zizmor", "--offline", "--persona", "pedantic", *workflows, ROOT / ".github" / "dependabot.yml")


@pytest.mark.real
def test_linters_would_find_something(tmp_path: Path) -> None:
    """The linters find faults in a worse workflow, so that the check above can fail."""
    worse = tmp_path / "worse.yml"
    worse.write_text(
        "on: push\njobs:\n  one:\n    runs-on: ubuntu-24.04\n    steps:\n      - uses: actions/checkout@v7\n"
        "      - run: echo ${{ github.head_ref }} ${{ needs.two.result }}\n"
    )
    run(tools() / "actionlint", worse, code=1)
    assert "template-injection" in run(BIN / "zizmor", "--offline", worse, code=14).stdout


def test_versions_agree() -> None:
    """The versions of the distributions, of the image's tag and of the tools of workflow and tests agree."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((ROOT / "deploy/helm/quotascope/Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version
    for path in ("deploy/compose/compose.yaml", "deploy/kubernetes/base/deployment.yaml", "docs/start/deployment.md"):
        tags = re.findall(r"(?:\bquotascope:|newTag: )(\d[\w.]*)", (ROOT / path).read_text())
        assert {*tags} == {version}, path
    used = set(re.findall(r"^((?:uv|twine)==\S+) ", (ROOT / ".github/tools.txt").read_text(), re.MULTILINE))
    assert len(used) == 2
    assert used <= set((ROOT / "constraints.txt").read_text().splitlines())


def test_workflows_install_by_hash_and_images_are_pinned() -> None:
    """No step takes whatever a registry has under a name; whoever publishes attests nothing."""
    workflows = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").iterdir()}
    steps = [step for workflow in workflows.values() for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    commands = "\n".join(step.get("run", "") for step in steps)
    assert "pipx" not in commands
    installs = re.findall(r"pip install .*", commands)
    assert installs
    assert {*installs} == {
        "pip install --require-hashes --requirement .github/tools.txt",
        "pip install --require-hashes --requirement deploy/requirements.txt",
        "pip install --no-deps --no-index dist/quotascope-*-py3-none-any.whl",
    }
    released = "\n".join(
        step.get("run", "") for job in workflows["release.yml"]["jobs"].values() for step in job["steps"]
    )
    # not the packages that `make` installs, beside files that are published
    assert re.findall(r"\bmake .*", released) == ["make --old-file=.venv/ready-run rules BIN=tools/bin"]
    for name, job in workflows["release.yml"]["jobs"].items():
        attests = any("attest" in step.get("uses", "") for step in job["steps"])
        assert attests is name.startswith("attest"), name
        assert not (attests and "environment" in job), name
    images = re.findall(r"^ARG PYTHON_IMAGE=(.*)$", (ROOT / "deploy/container/Dockerfile").read_text(), re.MULTILINE)
    services = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"].values()
    images += [service["image"] for service in services if "build" not in service]
    assert len(images) == 2
    assert all(re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image) for image in images)
    assert all(service["pids_limit"] for service in services)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_tools_make_the_bill_of_materials(tmp_path: Path) -> None:
    """The bill of materials has the version and the hashes of each dependency of the image."""
    python = tmp_path / "tools" / "bin" / "python"
    run(BIN / "uv", "venv", "--python", sys.executable, tmp_path / "tools")
    run(
        BIN / "uv",
        "pip",
        "install",
        "--python",
        python,
        "--require-hashes",
        "--requirement",
        ROOT / ".github/tools.txt",
    )
    bill, requirements = tmp_path / "bill.json", ROOT / "deploy/requirements.txt"
    command = ("requirements", "--output-reproducible", "--output-file", bill, requirements)
    run(python.with_name("cyclonedx-py"), *command)
    document = json.loads(bill.read_text())
    assert document["bomFormat"] == "CycloneDX"
    components = {f"{component['name']}=={component['version']}" for component in document["components"]}
    assert components == set(re.findall(r"^(\S+==\S+)", requirements.read_text(), re.MULTILINE))
    assert all(component["externalReferences"][0]["hashes"] for component in document["components"])
    run(python.with_name("pip-audit"), "--version")
