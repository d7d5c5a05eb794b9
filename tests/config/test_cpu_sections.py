"""The section of ``cpu_qos``: what may be asked for, under the peer's names."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from koordlet.config import schema
from koordlet.config.cpu_sections import CpuQos


def section(body: object) -> CpuQos:
    """The section of a configuration."""
    return schema.Config.model_validate({"policies": {"cpu_qos": body}}).policies.cpu_qos


def test_no_class_has_a_strategy_at_first() -> None:
    """Nothing is written before a class is enabled; then the peer's identities are the default."""
    made = section({})

    classes = (made.lsr_class, made.ls_class, made.be_class)
    assert [of_class.enable for of_class in classes] == [False] * 3
    assert [of_class.group_identity for of_class in classes] == [2, 2, -1]


@pytest.mark.parametrize(
    "body",
    [
        {"lsClass": {"groupIdentity": 3}},
        {"beClass": {"groupIdentity": -2}},
        {"beClass": {"schedIdle": 2}},
        {"lsClass": {"schedIdle": 1}},
        {"limits": {"maxIdentity": 3}},
    ],
)
def test_what_no_kernel_knows_is_refused(body: object) -> None:
    """Identities are -1 to 2, idle is 0 or 1 and for best-effort work alone."""
    with pytest.raises(ValidationError):
        section(body)
