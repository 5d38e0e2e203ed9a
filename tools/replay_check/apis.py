"""Keys of the APIs whose messages are looked into."""

from typing import Final

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
CREATE_TOPICS: Final = 19
ALTER_CLIENT_QUOTAS: Final = 49
