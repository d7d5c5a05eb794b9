"""The section of ``oom_score``: off unless asked for, and nothing else to say."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from koordlet.config import schema


def test_it_starts_off() -> None:
    """Who says nothing gets nothing written; a mode is all there is to say."""
    silent = schema.Config.model_validate({}).policies.oom_score
    asked = schema.Config.model_validate({"policies": {"oom_score": {"mode": "enforce"}}})

    assert silent.mode == "off"
    assert asked.policies.oom_score.mode == "enforce"


@pytest.mark.parametrize("body", [{"mode": "on"}, {"score": 1000}, {"limits": {"maxScore": 1}}])
def test_what_it_does_not_have_is_refused(body: object) -> None:
    """Unknown modes, keys and limits are errors, not silence."""
    with pytest.raises(ValidationError):
        schema.Config.model_validate({"policies": {"oom_score": body}})
