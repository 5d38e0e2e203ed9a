"""Users and client-ids of the platform's own programs."""

from typing import Final

SYSTEM_USERS: Final = (
    "(?i).*(entity-operator|topic-operator|user-operator|cruise[-_.]?control"
    "|schema[-_.]?registry|mirror[-_.]?maker|quotascope).*"
)
"""Regular expression, for RE2 as for Python, that matches full names."""
