"""Nothing exceeds the limits of its policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.config import limits, schema
from koordlet.model import cpuset, quantity


def reserved(**fields: object) -> schema.Config:
    """A configuration with a section for reserved CPUs."""
    return schema.Config.model_validate({"policies": {"reserved_cpus": fields}})


@pytest.mark.parametrize(
    ("limit", "cpus", "quantity_", "cpus_now", "quantity_now"),
    [
        (None, "0-7", "9", "0-7", "9"),
        (2, "0-7", None, "0-1", None),
        (2, "5,3,9", None, "3,5", None),
        (2, "0-1", "2", "0-1", "2"),
        (2, None, "2001m", None, "2"),
        (2, None, "1500m", None, "1500m"),
        (0, "0", "1", None, "0"),
    ],
)
def test_cut(
    limit: int | None,
    cpus: str | None,
    quantity_: str | None,
    cpus_now: str | None,
    quantity_now: str | None,
) -> None:
    """What is larger than its limit is cut to it; the lowest CPUs stay; the rest is as written."""
    config = reserved(limits={"maxCpus": limit}, cpus=cpus, quantity=quantity_)

    cut, _ = limits.apply(config)

    section = cut.policies.reserved_cpus
    assert (cpus_now, quantity_now) == (section.cpus, section.quantity)


def test_within_is_same() -> None:
    """Within its limits a configuration is not even copied."""
    config = reserved(limits={"maxCpus": 4}, cpus="0-3", quantity="4")

    within, cuts = limits.apply(config)

    assert (within is config, cuts) == (True, ())


@given(st.integers(0, 9), st.sets(st.integers(0, 300), min_size=1), st.integers(0, 20_000))
def test_never_exceeds(limit: int, cpus: set[int], milli: int) -> None:
    """No combination exceeds the limit, each cut is reported, and a second pass changes nothing."""
    text = str(cpuset.CPUSet.of(cpus))
    config = reserved(limits={"maxCpus": limit}, cpus=text, quantity=f"{milli}m")

    cut, cuts = limits.apply(config)

    section = cut.policies.reserved_cpus
    assert len(cpuset.CPUSet.parse(section.cpus or "")) == min(limit, len(cpus))
    assert quantity.units(section.quantity or "0") <= limit
    assert len(cuts) == (len(cpus) > limit) + (milli > limit * 1000)
    assert (cut, ()) == limits.apply(cut)
