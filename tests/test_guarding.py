"""Who is put on trial: whoever changed what can hurt."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet import guarding
from koordlet.history import series
from koordlet.model import action, cgroup, meter, plan, pod, qos, result, strain
from tests.kit import colocation, counting, moments
from tests.kit.colocation import Qos

NOW = colocation.moment(
    moments.machine(1, 4),
    [colocation.declared("web", Qos.LS), colocation.declared("job", Qos.BE)],
    layout=colocation.V2,
)


def did(group: str, knob: str, was: str, value: str, *, undo: bool = False) -> result.Result:
    """One write that was done."""
    write = action.WriteFile(
        target=f"/c/{group}/{knob}", value=value, policy="x", reason="r", knob=knob, group=group
    )
    step = plan.Step(order=0, action=write, was=was, undo=undo)
    return result.Result(target=write.target, verdict=result.Verdict.DONE, step=step)


@pytest.mark.parametrize(
    ("one", "tried"),
    [
        pytest.param(did("web", "cpu.max", "max 100000", "1000 100000"), True, id="its own file"),
        pytest.param(did("", "cpu.weight", "100", "1"), True, id="a group around it"),
        pytest.param(did("web/inside", "cpu.weight", "100", "1"), True, id="a group inside it"),
        pytest.param(did("job", "cpu.weight", "1", "10000"), True, id="others get more"),
        pytest.param(did("job", "cpu.max", "max 100000", "5000 100000"), False, id="others less"),
        pytest.param(did("web", "cpu.weight", "1", "100", undo=True), False, id="putting back"),
    ],
)
def test_what_can_hurt(one: result.Result, tried: bool) -> None:
    """Files of latency-sensitive work, and more for others; never what is put back."""
    assert (["x"] if tried else []) == guarding.hurtful(NOW, [one])


def test_what_can_hurt_and_is_no_file() -> None:
    """A property of a unit is judged as its file; so is who shares cores with nobody else."""
    unit = action.SetUnitProperty(
        target="/c/web/cpu.max",
        value="1000 100000",
        unit="web.service",
        properties=(),
        policy="x",
        reason="r",
        knob="cpu.max",
        group="web",
    )
    cores = action.ShareCore(target="/cores/others", members=(1,), policy="x", reason="r")
    for one in (unit, cores):
        step = plan.Step(order=0, action=one, was="max 100000")
        did = result.Result(target=one.target, verdict=result.Verdict.DONE, step=step)
        assert ["x"] == guarding.hurtful(NOW, [did])
        assert [] == guarding.hurtful(dataclasses.replace(NOW, pods=()), [did])


@pytest.mark.parametrize("layout", [colocation.V1, colocation.V2], ids=["v1", "v2"])
def test_a_kill_in_a_container(layout: cgroup.Layout) -> None:
    """On v1 the group above does not hear of it; on v2 it does, and counts for both."""
    one = colocation.kube("web", qos.KubeQos.BURSTABLE, Qos.LS)
    inside = f"{one.group}/c"
    one = dataclasses.replace(one, containers=(pod.Container(name="c", group=inside),))
    felt = strain.Strain(at=100.0, ls_cores=1.0, waiting=0.0)
    now = dataclasses.replace(
        colocation.moment(moments.machine(1, 4), [one], layout=layout), strain=felt
    )
    past = series.History()
    for at, killed in ((90.0, 0.0), (100.0, 1.0)):
        own = killed if layout is colocation.V2 else 0.0
        past.take(
            {
                "groups": counting.reading(
                    at, {meter.OOM_KILLS: [own, killed]}, names=(str(one.group), inside)
                )
            }
        )

    assert guarding.pain(now, past) == pytest.approx(guarding._KILL, rel=0.01)


def test_a_throttled_container() -> None:
    """Its limit is its own: the pod's group says nothing of it."""
    one = colocation.kube("web", qos.KubeQos.BURSTABLE, Qos.LS)
    inside = f"{one.group}/c"
    one = dataclasses.replace(one, containers=(pod.Container(name="c", group=inside),))
    felt = strain.Strain(at=100.0, ls_cores=1.0, waiting=0.0)
    now = dataclasses.replace(colocation.moment(moments.machine(1, 4), [one]), strain=felt)
    past = series.History()
    shares = {meter.THROTTLED: [0.0, 0.5]}
    past.take({"groups": counting.reading(100.0, shares, names=(str(one.group), inside))})

    assert guarding.pain(now, past) == pytest.approx(0.5 / guarding._THROTTLED, rel=0.01)


def test_pain_of_all_kinds() -> None:
    """Waiting, limits of its own, kills; unknown where nothing is felt."""
    felt = strain.Strain(at=100.0, ls_cores=1.0, waiting=0.3)
    now = dataclasses.replace(NOW, strain=felt)
    past = series.History()
    past.take({"groups": counting.reading(100.0, {meter.THROTTLED: [0.5]}, names=("web",))})

    assert guarding.pain(NOW, past) is None
    assert guarding.pain(now, series.History()) == pytest.approx(2.0, rel=0.01)
    assert guarding.pain(now, past) == pytest.approx(4.0, rel=0.01)
