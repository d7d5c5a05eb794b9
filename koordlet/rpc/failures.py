"""Translates gRPC failures into one of two errors with a message.

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


class RpcNoAnswerError(Exception):
    """The server does not answer, or not in time."""


class RpcRefusedError(Exception):
    """The server refused the call."""


def plain(words: str) -> str:
    """Shorten gRPC's message for an unreachable address, which repeats the kernel's error."""
    last = words.rpartition(": ")[2]
    return last if last in _KERNEL else words


def said(error: Any, address: str) -> RpcNoAnswerError | RpcRefusedError:
    """Message of a gRPC error. gRPC's errors are calls as well, which their types do not show."""
    status: grpc.StatusCode | None = error.code() if hasattr(error, "code") else None
    words = error.details() if hasattr(error, "details") else str(error)
    silent = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    if status is None or status in silent:
        return RpcNoAnswerError(f"{address}: {plain(str(words))}")
    return RpcRefusedError(f"{address}: {words} ({status.name})")
