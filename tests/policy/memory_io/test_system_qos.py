"""Knobs of the whole kernel: within bounds, or left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.config import schema
from koordlet.history import series
from koordlet.model import meter, nodeslo, plan, strategies
from koordlet.policy.framework import registry
from koordlet.policy.memory_io import system_qos as policy
from tests.kit import moments, pasts

GIB = 1 << 30
System = strategies.System


def decide(
    settings: System, *, memory: float | None = 64.0 * GIB, slo: System | None = None
) -> tuple[dict[str, str], list[str]]:
    """The files, and what is wrong."""
    now = moments.moment(moments.machine())
    if slo is not None:
        now = replace(now, slo=replace(nodeslo.DEFAULTS, source="NodeSLO", system=slo))
    past = series.History() if memory is None else pasts.past(node={meter.MEMORY_TOTAL: memory})
    made = policy.decide(now, past, policy.Settings(system=settings), policy.State())
    files = moments.written(made.actions)
    return files, [condition.message for condition in made.conditions]


def test_it_is_off_until_somebody_opts_in() -> None:
    """These files belong to everybody on the machine."""
    [row] = [candidate for candidate in registry.POLICIES if candidate.stem == policy.STEM]

    assert plan.Mode.OFF is row.default_mode
    assert schema.defaults().policies.system_qos.mode == "off"
    assert decide(System()) == ({}, [])


@pytest.mark.parametrize(
    ("factor", "memory", "value"),
    [
        (100, 64.0 * GIB, str(64 * (1 << 20) * 100 // 10_000)),
        (1, 64.0 * GIB, None),
        (600, 64.0 * GIB, None),
        (10_000, 4.0 * GIB, None),
        (0, 64.0 * GIB, None),
        (100, None, None),
    ],
)
def test_reserved_memory_has_bounds(factor: int, memory: float | None, value: str | None) -> None:
    """10 MiB at least, the operator's part at most, nothing while memory's size is not known."""
    files, wrong = decide(System(min_free_kbytes_factor=factor), memory=memory)

    assert value == files.get(policy.MIN_FREE)
    assert (value is None) == bool(wrong)


@pytest.mark.parametrize(("value", "fits"), [(9, False), (10, True), (400, True), (401, False)])
def test_watermarks_have_bounds(value: int, *, fits: bool) -> None:
    """A value outside is left alone and said."""
    files, wrong = decide(System(watermark_scale_factor=value))

    assert fits == (policy.WATERMARK in files)
    assert fits != bool(wrong)


def test_switches_are_written_as_numbers() -> None:
    """True is 1; what is not said stays as it is."""
    files, wrong = decide(System(page_cache_limit_enabled=True, sched_group_identity_enabled=0))

    assert [files[policy.FILES[name][0]] for name in (
        "page_cache_limit_enabled", "sched_group_identity_enabled",
    )] == ["1", "0"]  # fmt: skip
    assert not wrong
    assert len(files) == 2


def test_an_object_replaces_the_file() -> None:
    """With a NodeSLO only its values count."""
    files, _ = decide(System(watermark_scale_factor=20), slo=System(memcg_reap_back_ground=1))

    assert [policy.FILES["memcg_reap_back_ground"][0]] == list(files)


def test_scheduler_features_are_said_and_never_set() -> None:
    """A debugging aid without promises is no knob."""
    files, [wrong] = decide(System(sched_features={"ID_IDLE_AVG": True}))

    assert files == {}
    assert "ID_IDLE_AVG" in wrong
