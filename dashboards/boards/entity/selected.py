"""Who the dashboard is about."""

from __future__ import annotations

from typing import Final

from ...variables import exactly_or_none

SELECTED: Final = (exactly_or_none("user"), exactly_or_none("client_id"))
"""The pair, the user alone and the client-id alone: any of them can be what a quota is about."""
