"""Feeds on Unix sockets, as in the tests of rpc."""

from tests.rpc.conftest import loop, serve

__all__ = ["loop", "serve"]
