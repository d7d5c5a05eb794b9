"""Asking a scheduler for its documents: one that does not answer, names that are not unique."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet import cli
from koordlet.cli import scheduler_documents
from koordlet.model import errors


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("describe", "gang", "g", "--address", "127.0.0.1:1"),
            "no scheduler that knows gangs answers: Connection refused",
        ),
        (("get", "gangs", "--address", "unix:/x.sock"), "gangs are asked for over HTTP"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_an_error_that_says_what_to_name(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address is the scheduler's HTTP address, not its socket."""
    assert cli.main([*words, "-o", "json"]) != 0
    error: dict[str, Any] = json.loads(capsys.readouterr().err)["error"]
    assert problem in error["message"]
    assert "--http" in error["fix"]


def test_a_name_that_nothing_or_several_have_is_an_error_that_lists_them() -> None:
    """Objects of two namespaces may have one name."""
    several = [{"claim": "a/c"}, {"claim": "b/c"}]
    with pytest.raises(errors.HostError, match=r"several claims have this name.*a/c, b/c"):
        scheduler_documents.named(several, "claim", "c")
    with pytest.raises(errors.HostError, match=r"no such quota.*koordlet get quotas"):
        scheduler_documents.named([], "quota", "q")
    assert scheduler_documents.named(several[:1], "claim", "c") == {"claim": "a/c"}
