"""The seat of a custom quota callback in a quota manager."""

from collections.abc import Mapping
from typing import Final

from ..kafka.entities import QuotaEntity, QuotaType
from ..kafka.principal import Principal
from ..kafka.rules import QuotaRules
from .client_sensors import EntityTags
from .quota_callback import QuotaCallback

CUSTOM_FLAG: Final = 8
"""The level flag of a callback; it is there from the start and no other joins it (Kafka: `CUSTOM_QUOTAS`)."""


class CallbackTags(EntityTags):
    """Tags that a callback made up."""

    __slots__ = ("_tags",)

    def __init__(self, tags: Mapping[str, str]) -> None:
        super().__init__("", "", "")
        self._tags: dict[str, str] = dict(tags)
        self.suffix = ":".join(self._tags.values())

    def metric_tags(self) -> dict[str, str]:
        """Return the tags of the metrics."""
        return self._tags


class CallbackRules(QuotaRules):
    """
    The rules of one quota type under a callback, which learns of every change and makes the decisions.

    They are kept so that they can be read; they decide nothing.

    Args:
        callback: the maker of the decisions.
        quota_type: the type that the callback is asked about.

    """

    __slots__ = ("_callback", "_quota_type")

    _callback: QuotaCallback
    _quota_type: QuotaType

    def __init__(self, callback: QuotaCallback, quota_type: QuotaType) -> None:
        super().__init__()
        self._callback = callback
        self._quota_type = quota_type
        self._flags = CUSTOM_FLAG

    def set(self, entity: QuotaEntity, bound: float) -> None:
        """Note a quota and pass it to the callback."""
        super().set(entity, bound)
        self._flags = CUSTOM_FLAG
        self._callback.update_quota(self._quota_type, entity, bound)

    def remove(self, entity: QuotaEntity) -> bool:
        """Forget a quota and call the callback in any case; return whether there was one."""
        removed = super().remove(entity)
        self._flags = CUSTOM_FLAG
        self._callback.remove_quota(self._quota_type, entity)
        return removed

    def tags_of(self, principal: Principal, client_id: str) -> CallbackTags:
        """Ask under which tags a request is measured."""
        return CallbackTags(self._callback.quota_metric_tags(self._quota_type, principal, client_id))

    def limit_of(self, metric_tags: Mapping[str, str]) -> float | None:
        """Ask for the bound of tags, None for unlimited."""
        return self._callback.quota_limit(self._quota_type, metric_tags)

    def is_reset_required(self) -> bool:
        """Ask whether all bounds have to be asked for again."""
        return self._callback.quota_reset_required(self._quota_type)
