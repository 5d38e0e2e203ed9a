"""The HTTP server: connections, TLS, logins, limits, and the headers of every answer."""

from .server import HttpServer

__all__ = ["HttpServer"]
