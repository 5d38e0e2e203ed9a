"""A dictionary of bounded size."""

from __future__ import annotations

from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(dict[_Key, _Value], Generic[_Key, _Value]):
    """Dictionary of the `capacity` entries that were set last, so that an application may run for years."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Set an entry; when there are too many, forget the oldest."""
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._capacity:
            del self[next(iter(self))]
