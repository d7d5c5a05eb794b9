"""What gRPC says when a call fails, as one of two errors with a sentence.

Covers: nobody answers, somebody says no. Does not cover: trying again (``koordlet.client``).
"""

from __future__ import annotations

import errno
import os
from typing import Any

import grpc

#: What a failing call raises.
Error = grpc.RpcError


_KERNEL = frozenset(map(os.strerror, (errno.ENOENT, errno.ECONNREFUSED, errno.EACCES)))


class NoAnswerError(Exception):
    """Nobody answers there, or not in time."""


class RefusedError(Exception):
    """Somebody answers, and says no."""


def plain(words: str) -> str:
    """Of an address that nobody is at gRPC tells thrice what the kernel said in a few words."""
    last = words.rpartition(": ")[2]
    return last if last in _KERNEL else words


def said(error: Any, address: str) -> NoAnswerError | RefusedError:
    """What gRPC says, in a sentence. Its errors are calls as well, which no type of it says."""
    status: grpc.StatusCode | None = error.code() if hasattr(error, "code") else None
    words = error.details() if hasattr(error, "details") else str(error)
    silent = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    if status is None or status in silent:
        return NoAnswerError(f"{address}: {plain(str(words))}")
    return RefusedError(f"{address}: {words} ({status.name})")
