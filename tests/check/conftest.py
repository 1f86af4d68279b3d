"""A command to run, also against a server."""

from __future__ import annotations

from tests.end_to_end.conftest import authority, live, run, serve

__all__ = ["authority", "live", "run", "serve"]
