"""Errors name the culprit and the fix, and whose fault it is."""

from __future__ import annotations

import pytest

from koordlet.model import errors


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.HostError("broken"), "broken"),
        (errors.HostError("broken", culprit="/x"), "/x: broken"),
        (errors.HostError("broken", fix="mend it"), "broken (mend it)"),
        (errors.HostError("broken", culprit="/x", fix="mend it"), "/x: broken (mend it)"),
    ],
)
def test_what_a_person_reads(error: errors.KoordletError, text: str) -> None:
    """Culprit, message and fix in one line, whatever of them there is."""
    assert text == str(error)


def test_exit_statuses() -> None:
    """What the operator wrote wrongly is 2, everything else 1."""
    kinds = (errors.UsageError, errors.ConfigError, errors.HostError, errors.BugError)

    assert [kind("x").status for kind in kinds] == [2, 2, 1, 1]
    assert issubclass(errors.TakenError, errors.HostError)


def test_errno_names() -> None:
    """Numbers have their names where the platform has them."""
    assert tuple(map(errors.errno_name, (22, 99999, None))) == ("EINVAL", "99999", "?")
