"""
Builds all files of a release that can be built on this machine, and installs them where nothing else is.

`make release-check` runs it; the files stay in build/release. What cannot be built here (the image without a Docker
daemon, wheels of other machines) is named at the end. The exit code is 1 if a step fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # runs as a script

from tests.deploy.provision import tools  # noqa: E402 - needs the path

BIN: Final = Path(sys.executable).parent
OUT: Final = ROOT / "build" / "release"
FILES: Final = OUT / "files"
"""Folder of the files that a release publishes."""
SOURCE: Final = OUT / "source"
"""Folder of a copy of the files that git knows."""
FRESH: Final = OUT / "environment"
UNRESOLVED: Final = frozenset({"all", "kerberos"})
"""Extras that are not resolved: gssapi has no wheels for Linux, and `all` has the others."""
_COMPILED: Final = "import quotascope.metrics.engine.client_quota_manager as it; print(it.__file__)"


class StepFailed(Exception):
    """A step did not do what it has to; the message has the output."""


class NotHere(Exception):
    """A step that this machine cannot do; the message says why."""


def run(*command: str | Path, cwd: Path = ROOT, environ: Mapping[str, str] | None = None) -> str:
    """Return the output of a program. Raises `StepFailed`."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environ or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = " ".join(map(str, command))
        raise StepFailed(f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def copy() -> str:
    """Copy the files that git knows."""
    names = run("git", "ls-files", "-z").strip("\0").split("\0")
    for name in names:
        target = SOURCE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target, follow_symlinks=False)
    return f"{len(names):,} files"


def distributions() -> str:
    """Build the source distribution, the plain wheel of it, the wheel of quotascope-spark, and the compiled wheel."""
    pure = {"QUOTASCOPE_PURE": "1", "PYTHONWARNINGS": "ignore"}
    run(BIN / "uv", "build", "--out-dir", FILES, SOURCE, environ=pure)
    run(BIN / "uv", "build", "--wheel", "--out-dir", FILES, SOURCE / "packaging" / "spark", environ=pure)
    run(BIN / "uv", "build", "--wheel", "--out-dir", FILES, SOURCE, environ={**pure, "QUOTASCOPE_PURE": "0"})
    run(BIN / "twine", "check", "--strict", *_distributions())
    return ", ".join(path.name for path in _distributions())


def installation() -> str:
    """Install the compiled wheel by the hashes of the image's requirements, and run it."""
    run(BIN / "uv", "venv", "--python", sys.executable, FRESH)
    python = FRESH / "bin" / "python"
    install = (BIN / "uv", "pip", "install", "--python", python)
    run(*install, "--require-hashes", "--requirement", SOURCE / "deploy" / "requirements.txt")
    run(*install, "--no-deps", _compiled_wheel())
    run(BIN / "uv", "pip", "check", "--python", python)
    place = run(python, "-c", _COMPILED, cwd=OUT).strip()
    if not place.endswith(".so"):
        raise StepFailed(f"the compiled wheel has {place}")
    quotascope = FRESH / "bin" / "quotascope"
    example = OUT / "quotascope.yaml"
    example.write_text(run(quotascope, "config", "example", cwd=OUT), encoding="utf-8")
    run(quotascope, "demo", "--duration", "2", cwd=OUT)
    return run(quotascope, "--version", cwd=OUT).strip()


def extras() -> str:
    """Resolve each extra of the plain wheel, without installing it."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = sorted({*project["optional-dependencies"]} - UNRESOLVED)
    (wheel,) = FILES.glob("quotascope-*-none-any.whl")
    for name in names:
        command = (BIN / "uv", "pip", "install", "--dry-run", "--only-binary", ":all:", "--python")
        run(*command, FRESH / "bin" / "python", "--constraint", SOURCE / "constraints.txt", f"{wheel}[{name}]")
    return ", ".join(names)


def rules() -> str:
    """Write the rules and the mixin with the installed wheel and the workflow's tools; let Prometheus check them."""
    install = (BIN / "uv", "pip", "install", "--python", FRESH / "bin" / "python")
    run(*install, "--require-hashes", "--requirement", SOURCE / ".github" / "tools.txt")
    quotascope, folder = FRESH / "bin" / "quotascope", OUT / "rules"
    for profile in ("core", "all"):
        written = FILES / f"quotascope-prometheusrule-{profile}.yaml"
        options = ("--profile", profile, "--prometheus-rule", written)
        run(quotascope, "alerts", "write", folder / profile, *options, cwd=OUT)
        promtool = shutil.which("promtool")
        if promtool is None:
            raise NotHere("no promtool checks them: run `make services`")
        run(promtool, "check", "rules", *sorted((folder / profile).glob("*.yaml")))
    mixin = run(quotascope, "alerts", "mixin", cwd=OUT)
    (FILES / "quotascope-mixin.libsonnet").write_text(mixin, encoding="utf-8")
    return "both profiles, and the mixin"


def dashboards() -> str:
    """Write the dashboards, which the repository has as well."""
    folder = OUT / "dashboards"
    run(BIN / "quotascope", "dashboards", "write", folder, cwd=OUT)
    boards = sorted(path.name for path in folder.rglob("quotascope-*.json"))
    if not boards:
        raise StepFailed(f"no dashboard is in {folder}")
    return f"{len(boards)} dashboards"


def chart() -> str:
    """Lint and pack the Helm chart."""
    helm, folder = tools() / "helm", SOURCE / "deploy" / "helm" / "quotascope"
    run(helm, "lint", "--strict", folder)
    run(helm, "template", "check", folder)
    run(helm, "package", folder, "--destination", FILES)
    return next(FILES.glob("quotascope-*.tgz")).name


def site() -> str:
    """Build the site of the documentation."""
    run(BIN / "mkdocs", "build", "--strict", "--quiet", "--site-dir", OUT / "site", environ={"NO_COLOR": "1"})
    return f"{sum(1 for _ in (OUT / 'site').rglob('*.html'))} pages"


def recipe() -> str:
    """Check the recipe of the image."""
    run(BIN / "hadolint", SOURCE / "deploy" / "container" / "Dockerfile")
    return "hadolint finds nothing"


def image() -> str:
    """Build the image and let it answer. Raises `NotHere` without a Docker daemon."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        raise NotHere("no Docker daemon")
    file = SOURCE / "deploy" / "container" / "Dockerfile"
    run(docker, "build", "--file", file, "--tag", "quotascope:release-check", SOURCE)
    return run(docker, "run", "--rm", "--read-only", "quotascope:release-check", "--version").strip()


def checksums() -> str:
    """Write the checksums of all files."""
    copied = ("deploy/requirements.txt", "constraints.txt")
    for name in copied:
        shutil.copy(SOURCE / name, FILES)
    files = sorted(path for path in FILES.iterdir() if path.name not in {"SHA256SUMS", ".gitignore"})
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (FILES / "SHA256SUMS").write_text("".join(lines), encoding="ascii")
    return f"{len(files)} files"


def _distributions() -> list[Path]:
    return sorted([*FILES.glob("*.whl"), *FILES.glob("*.tar.gz")])


def _compiled_wheel() -> Path:
    wheels = [path for path in FILES.glob("quotascope-*.whl") if not path.name.endswith("-none-any.whl")]
    if not wheels:
        raise StepFailed("no compiled wheel was built: is there a C compiler, and are there Python's headers?")
    return wheels[0]


STEPS: Final[Mapping[str, Callable[[], str]]] = {
    "copy of the repository": copy,
    "distributions": distributions,
    "installation": installation,
    "extras": extras,
    "rules": rules,
    "dashboards": dashboards,
    "Helm chart": chart,
    "site": site,
    "recipe of the image": recipe,
    "image": image,
    "checksums": checksums,
}


def results() -> Iterator[tuple[str, str, str]]:
    """Yield name, state and details of each step as it ends; after the failure of one, the others are still done."""
    for name, step in STEPS.items():
        try:
            yield name, "ok", step()
        except NotHere as reason:
            yield name, "not here", str(reason)
        except Exception as error:  # noqa: BLE001 - a step that fails must not hide the others
            yield name, "failed", str(error)


def main() -> int:
    """Run all steps; 1 if one failed."""
    shutil.rmtree(OUT, ignore_errors=True)
    FILES.mkdir(parents=True)
    failed = False
    for name, state, details in results():
        print(f"{state:<9} {name}: {details}", flush=True)
        failed |= state == "failed"
    print("not here  wheels for aarch64 and for other versions of Python, attestations: the workflow makes them")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
