"""
Why a vector does not pass.

```
Failure
├── Unmet       the engine answered something else than expected
└── Malformed   the vector itself makes no sense
```
"""


class Failure(Exception):
    """Any reason, in words."""


class Unmet(Failure):
    """The engine answered something else than expected."""


class Malformed(Failure):
    """The vector itself makes no sense: a missing or unknown key, a value of the wrong type, an unknown operation."""
