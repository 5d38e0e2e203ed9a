"""The configured limits of a quota engine in this process."""

from __future__ import annotations

from quotascope.metrics import Clock, QuotaManagers

from .model import Limits, NodeSettings


class EmbeddedLimits:
    """
    Reads the rules of an engine that is broker and controller in one.

    Args:
        quotas: The engine's managers.
        node_id: The label ``broker`` of its usage.
        clock: The engine's clock, epoch ms.
        request_capacity_threads: Threads that serve requests, None when that means nothing here.

    """

    def __init__(
        self,
        quotas: QuotaManagers,
        node_id: str,
        clock: Clock,
        request_capacity_threads: float | None = None,
    ) -> None:
        self._quotas = quotas
        self._node_id = node_id
        self._clock = clock
        self._request_capacity_threads = request_capacity_threads

    async def read(self) -> Limits:
        """The rules in force now."""
        return Limits(
            rules={
                manager.quota_type: manager.rules() for manager in self._quotas.all()
            },
            nodes={self._node_id: self._settings()},
            active_controller=self._node_id,
            read_at=self._clock() / 1000,
        )

    async def close(self) -> None:
        """Nothing to release: the engine is somebody else's."""

    def _settings(self) -> NodeSettings:
        client = self._quotas.produce.config
        controller = self._quotas.controller_mutation.config
        return NodeSettings(
            request_capacity_threads=self._request_capacity_threads,
            quota_window_seconds=float(client.window_seconds),
            controller_quota_samples=controller.samples,
            controller_quota_window_seconds=float(controller.window_seconds),
        )
