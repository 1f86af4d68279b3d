"""Servers for the programs of these tests to reach."""

from __future__ import annotations

from tests.cluster.serving import authority, serve

__all__ = ["authority", "serve"]
