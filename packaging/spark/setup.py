"""Puts the packages of the small distribution into a folder of their own, and that folder on the path."""

from pathlib import Path
from typing import Final

from setuptools import setup
from setuptools.command.build_py import build_py

_FOLDER: Final = "_quotascope_spark"


class BuildWithPath(build_py):
    """
    Build that adds the file by which Python finds the folder.

    Two distributions with the same files could not be removed one by one.
    """

    def run(self) -> None:
        """Copy the packages, and write the file beside them."""
        super().run()
        Path(self.build_lib, "quotascope_spark.pth").write_text(f"{_FOLDER}\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildWithPath})
