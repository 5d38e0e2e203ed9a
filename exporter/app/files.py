"""Follows the files of an exporter: those of its web config and those that its configuration names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from ..config import Config
from ..config.load import files_in
from ..errors import ExporterError
from ..following import LOOK_EVERY_SECONDS, FileCalls, Signature, signature
from ..logs import RateLimitedLog
from ..web import HttpServer
from .reload import Reloader, Swappable


class FollowedFiles:
    """
    Watches files, and puts their new content to use when they have changed.

    Args:
        server: Has a web config.
        reloader: Builds the parts again whose files have changed; None where that cannot be done.

    """

    def __init__(self, server: HttpServer, reloader: Reloader | None) -> None:
        self._server = server
        self._reloader = reloader
        self._calls = FileCalls("web config")
        self._unread = RateLimitedLog("the files of the web config cannot be read", "error")
        self._seen: Signature | None = None
        self.certificate_ends: Mapping[Path, float] = {}
        """The Unix time until which the certificates are valid, for each file that has some."""

    async def run(self, exporter: Swappable) -> None:
        """Look until canceled."""
        while True:
            try:
                await self._calls.run(lambda: self._look(exporter.parts.config))
            except ExporterError as error:
                self._unread.add(error=str(error))
            if self._reloader is not None:
                await self._reloader.renew(exporter)
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def _look(self, config: Config) -> None:
        # the library that reads certificates takes longer to import than a scrape
        from ..diagnosis.certificates import ends_of_files  # noqa: PLC0415

        web = self._server.look()
        new_signature = signature([*files_in(config), *web.files])
        if new_signature != self._seen:
            self.certificate_ends = ends_of_files(config, web)
            self._seen = new_signature
