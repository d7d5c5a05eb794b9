"""A call that fails says who does not answer, or what was refused; errors name the address."""

from __future__ import annotations

import os
from pathlib import Path

import grpc
import pytest

from koordlet.model import errors
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


_CONNECT = "failed to connect to all addresses; last error: UNKNOWN: unix:/s: "


@pytest.mark.parametrize(
    ("status", "details", "sentence"),
    [
        ("UNAVAILABLE", "connect failed: No such file or directory", "/s: no scheduler listens"),
        ("UNAVAILABLE", "connect failed: Connection refused", "/s: no scheduler listens"),
        ("UNAVAILABLE", "connect failed: Permission denied", "/s: this socket is not for this"),
        (
            "UNAVAILABLE",
            "connection attempt timed out before receiving SETTINGS frame",
            "/s: the scheduler does not answer Submit: failed to connect",
        ),
        ("DEADLINE_EXCEEDED", "", "/s: the scheduler does not answer Submit: DEADLINE_EXCEEDED"),
        ("INVALID_ARGUMENT", "no", "Submit (INVALID_ARGUMENT): failed to connect"),
        ("NOT_FOUND", "No such file or directory", "Submit (NOT_FOUND): failed to connect"),
    ],
)
def test_who_does_not_serve(status: str, details: str, sentence: str) -> None:
    """A scheduler that hangs is told from one that is not there, and from a socket of others."""
    words = _CONNECT + details if details else ""
    error = Failed(grpc.StatusCode[status], words)

    assert str(client.refusal(error, "Submit", "unix:/s")).startswith(sentence)


@pytest.mark.parametrize("text", [False, True])
def test_a_path_that_grpc_cannot_take_is_refused_by_name(*, text: bool) -> None:
    """As the agent refuses to listen there: a state directory may have any name."""
    path = Path(os.fsdecode(b"/run/\xff/koordlet.sock"))
    with pytest.raises(errors.HostError, match="not UTF-8") as refused:
        client.RpcClient(f"unix:{path}" if text else path)
    assert refused.value.culprit == f"unix:{path}"
    assert "--state-dir" in refused.value.fix
