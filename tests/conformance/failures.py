"""
Why a vector does not pass.

```
Failure
├── Unmet         the engine answered something else than expected
├── Malformed     the vector itself makes no sense
└── NotYetBuilt   the vector is about something that the engine does not have yet
```
"""


class Failure(Exception):
    """Any reason, in words."""


class Unmet(Failure):
    """The engine answered something else than expected."""


class Malformed(Failure):
    """The vector itself makes no sense: a missing or unknown key, a value of the wrong type, an unknown operation."""


class NotYetBuilt(Failure):
    """The vector is about something that the engine does not have yet."""
