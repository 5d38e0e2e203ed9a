"""Which versions of a message the schemas here hold."""

from ..errors import UnknownVersion, UnreadableMessage
from .encoding import WRONG_SHAPE, Json


def known_version(api: str, header: Json, *, newest: int) -> int:
    """The version in a request's header; raises `UnknownVersion` when it is newer than the schema, `UnreadableMessage` without one."""
    try:
        version = int(header["requestApiVersion"])
    except WRONG_SHAPE as error:
        raise UnreadableMessage(
            f"the header of a {api} request names no version: {error!r}"
        ) from error
    if not 0 <= version <= newest:
        raise UnknownVersion(
            f"{api} of version {version}: the newest whose size is known is {newest}"
        )
    return version
