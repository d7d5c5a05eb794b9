"""A call that fails is one of two errors, with the address in its sentence."""

from __future__ import annotations

import grpc
import pytest

from koordlet.rpc import client


class Failed(grpc.RpcError):
    """As gRPC raises it: an error that is a call as well."""

    def __init__(self, status: grpc.StatusCode, words: str) -> None:
        super().__init__()
        self._status, self._words = status, words

    def code(self) -> grpc.StatusCode:
        return self._status

    def details(self) -> str:
        return self._words


def test_an_error_that_is_no_call() -> None:
    """What gRPC's base class alone can tell: nobody answered."""
    error = client.explained(grpc.RpcError("odd"), "a:1")

    assert isinstance(error, client.RpcNoAnswerError)
    assert str(error) == "a:1: odd"


@pytest.mark.parametrize("status", list(grpc.StatusCode))
def test_every_status(status: grpc.StatusCode) -> None:
    """Silence is no answer; anything else is a no, and names its status."""
    error = client.explained(Failed(status, "words"), "a:1")

    if status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        assert isinstance(error, client.RpcNoAnswerError)
        assert str(error) == "a:1: words"
    else:
        assert isinstance(error, client.RpcRefusedError)
        assert str(error) == f"a:1: words ({status.name})"
