"""What is missing is a skip for a developer, and a failure on CI."""

from __future__ import annotations

import pytest

from tests.kit import needs


@pytest.mark.parametrize("value", [{}, {"CI": ""}])
def test_a_developer_is_told_why(value: dict[str, str]) -> None:
    """The test is skipped for that reason; ``CI`` set to nothing is not set."""
    with pytest.raises(pytest.skip.Exception, match="no loop device"):
        needs.missing("no loop device", value)


def test_on_ci_nothing_is_left_out_unseen() -> None:
    """The same is a failure there, with the reason."""
    with pytest.raises(pytest.fail.Exception, match="CI has to have this: no loop device"):
        needs.missing("no loop device", {"CI": "true"})


def test_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it tests are skipped, with it they are not, and on CI they never are."""
    monkeypatch.delenv("CI", raising=False)
    without, shell = needs.program("no-such-program"), needs.program("sh")
    monkeypatch.setenv("CI", "true")
    on_ci = needs.program("no-such-program")

    assert [mark.args[0] for mark in (without, shell, on_ci)] == [True, False, False]


def test_no_reason_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only words stop a test."""
    monkeypatch.delenv("CI", raising=False)
    needs.unless("")
    with pytest.raises(pytest.skip.Exception, match="needs root"):
        needs.unless("needs root")
