"""Why the operating system would not do something."""

from __future__ import annotations

import errno
import os
import ssl


def os_reason(error: OSError) -> str:
    """The reason alone, such as ``Connection refused``: asyncio puts a text of its own, with the address, in its place."""
    if isinstance(error, ssl.SSLError):  # its errno is not the system's
        return error.reason or str(error)
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or str(error)
