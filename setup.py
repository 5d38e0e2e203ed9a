"""
Builds the hot path of the engine as C, by mypyc and from the same source, where that is possible.

A wheel is compiled where a C compiler and Python's headers are, else it is plain Python; so is an editable install.
`QUOTASCOPE_PURE=1` builds plain Python in any case; `QUOTASCOPE_PURE=0` compiles an editable install, too, and fails
where it cannot.

`QUOTASCOPE_REPOSITORY`, the address of the repository's page, makes the links of the description absolute, at the tag
of the version, and is the project's address on a package index.
"""

import os
import re
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.errors import BaseError, CompileError

# setuptools' own, which it puts in the place of the one that Python lost
from distutils.ccompiler import new_compiler  # isort: skip
from distutils.sysconfig import customize_compiler  # isort: skip

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = os.environ.get("QUOTASCOPE_REPOSITORY", "").rstrip("/")

# What a record, a check or a request goes through. Programs may inherit from everything else, and from the classes here
# that say so (`mypyc_attr`).
COMPILED = (
    "engine/callback_rules",
    "engine/client_quota_manager",
    "engine/client_sensors",
    "engine/config",
    "engine/controller_mutation",
    "engine/cumulative",
    "engine/delay_queue",
    "engine/extras/all_time",
    "engine/extras/meter",
    "engine/extras/record_loop",
    "engine/metric",
    "engine/metric_name",
    "engine/mutation_quota",
    "engine/quota",
    "engine/rate",
    "engine/reaper",
    "engine/registry",
    "engine/request_quota_manager",
    "engine/sampled",
    "engine/sensor",
    "engine/stat",
    "engine/throttle_time",
    "engine/token_bucket",
    "engine/windowed",
    "kafka/numbers",
    "kafka/principal",
    "kafka/rules",
)


def _has_compiler() -> bool:
    """Whether a file that needs Python's headers can be compiled."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <Python.h>\n", encoding="ascii")
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            include = [sysconfig.get_path(key) for key in ("include", "platinclude")]
            compiler.compile([str(source)], folder, include_dirs=include)
        except (BaseError, CompileError, OSError):
            return False
    return True


def _extensions() -> list[Extension]:
    from mypyc.build import mypycify  # noqa: PLC0415 - there only for a compiled build

    # The links give the modules their names (docs/decisions/0001); a source distribution comes without them.
    room = Path(".imports/quotascope/metrics")
    if not room.exists():
        shutil.copytree("metrics", room)
    paths = [f"{room.as_posix()}/{name}.py" for name in COMPILED]
    extensions: list[Extension] = mypycify(paths, group_name="quotascope", target_dir="build/mypyc")
    if os.name == "posix":  # lets functions of different modules be merged
        for extension in extensions:
            extension.extra_compile_args.append("-fvisibility=hidden")
    return extensions


def _description() -> str:
    text = Path("README.md").read_text(encoding="utf-8")
    if not REPOSITORY:
        return text
    tag = f"v{PROJECT['project']['version']}"

    def absolute(link: re.Match[str]) -> str:
        view = "raw" if link[1].startswith("!") else "blob"
        return f"{link[1]}({REPOSITORY}/{view}/{tag}/{link[2]})"

    return re.sub(r"(!?\[[^]]*])\((?![a-z]+:|#)([^)]+)\)", absolute, text)


wish = os.environ.get("QUOTASCOPE_PURE", "")
compiled = wish == "0" or (wish != "1" and _has_compiler())
building = "bdist_wheel" in sys.argv or (wish == "0" and "editable_wheel" in sys.argv)
setup(
    long_description=_description(),
    long_description_content_type="text/markdown",
    project_urls={
        name: f"{REPOSITORY}{path}"
        for name, path in (
            ("Source", ""),
            ("Documentation", "/blob/HEAD/docs/index.md"),
            ("Changelog", "/blob/HEAD/CHANGELOG.md"),
            ("Issues", "/issues"),
        )
        if REPOSITORY
    },
    setup_requires=PROJECT["dependency-groups"]["compile"] if compiled else [],
    ext_modules=_extensions() if compiled and building else [],
)
