"""Asks agents over HTTP."""
