"""Containers that v1 would not start, those that did not start, and what updates ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from koordlet.agent import container_runtime
from koordlet.agent.nri import handler as handlers
from koordlet.agent.nri import start_check
from koordlet.host.systemd import dbus
from koordlet.model import action, adjustment, cpuset, decision, knob, plan, pod, qos, result
from koordlet.workloads.nri import session, trust
from koordlet.workloads.nri.messages import NriEvent
from tests.agent.nri.test_handler import BOX, GROUP, POD, Scene, adjusted, be_pool, stage
from tests.apply import test_units
from tests.kit import agents, moments, prepared_claims


@pytest.fixture
def scene(ram: Path) -> Iterator[Scene]:
    """An agent and its handler."""
    with stage(ram) as made:
        yield made


class Results:
    """A runtime that only takes results."""

    def __init__(self, handler: handlers.NriHandler) -> None:
        self.on_results = handler.on_results

    def conditions(self) -> tuple[decision.Condition, ...]:
        """None."""
        return ()

    def counted(self) -> dict[str, float]:
        """Nothing."""
        return {}


@pytest.mark.parametrize("ceased", [False, True])
def test_a_request_outside_of_the_pod_s_group(scene: Scene, *, ceased: bool) -> None:
    """As the kubelet's static policy makes one: v1 would refuse it, so it gets what was decided."""
    scene.sandbox()
    pool = be_pool(scene)
    carries = dataclasses.replace(BOX, cpus="0-4")
    inside = dataclasses.replace(BOX, name="fits", cpus=pool)
    scene.handler.trust.state = trust.StartRecord(ceased=ceased)

    assert pool == str(scene.happens(NriEvent.CREATE_CONTAINER, carries).cpus)
    assert scene.happens(NriEvent.CREATE_CONTAINER, inside).empty


def test_an_update_outside_of_the_pod_s_group(scene: Scene) -> None:
    """As the kubelet rewrites shared sets; it would be refused, also where nothing is decided."""
    scene.sandbox()
    scene.group(GROUP, be_pool(scene))
    foreign = dataclasses.replace(BOX, id="d" * 64, cgroup=f"/other/pod/{'d' * 64}")
    scene.group("other/pod", "0-4")
    scene.site.host.write(scene.at("other/pod/cpuset.cpus"), b"2-3\n")
    scene.group(foreign.cgroup.strip("/"), "2-3")

    assert be_pool(scene) == str(scene.happens(NriEvent.UPDATE_CONTAINER, cpus="0-4").cpus)
    assert str(scene.happens(NriEvent.UPDATE_CONTAINER, foreign, cpus="0-4").cpus) == "2-3"
    assert scene.happens(NriEvent.UPDATE_CONTAINER, foreign, cpus="2").empty


def test_what_an_update_asked_for_is_what_comes_back(scene: Scene) -> None:
    """The kubelet moves a shared container aside, once: after us it is there, not where it was."""
    wanted = adjusted(scene)
    scene.group(GROUP, str(wanted.cpus))
    scene.happens(NriEvent.START_CONTAINER)
    agents.settle(scene.who, scene.site.clock)
    assert be_pool(scene) == str(scene.happens(NriEvent.UPDATE_CONTAINER, cpus="0").cpus)
    agents.settle(scene.who, scene.site.clock)
    assert be_pool(scene) == scene.cpus(GROUP)
    scene.who.restore()

    assert scene.cpus(GROUP) == "0"


def test_an_update_that_a_write_of_ours_overtakes_is_what_comes_back(scene: Scene) -> None:
    """It got what it asked for, and before the runtime had written that we did: it asks once."""
    wanted = adjusted(scene)
    scene.group(GROUP, str(wanted.cpus))
    scene.happens(NriEvent.START_CONTAINER, dataclasses.replace(BOX, cpus="0-4"))
    agents.settle(scene.who, scene.site.clock)
    assert scene.happens(NriEvent.UPDATE_CONTAINER, cpus="1").empty
    scene.site.host.write(scene.at(f"{GROUP}/cpuset.cpus"), b"2\n")
    scene.who.runtime = cast("container_runtime.Runtime", Results(scene.handler))
    agents.settle(scene.who, scene.site.clock)
    assert be_pool(scene) == scene.cpus(GROUP)
    scene.who.restore()

    assert scene.cpus(GROUP) == "1"


def test_an_update_that_gets_what_it_asks_for_has_the_last_word(scene: Scene) -> None:
    """The runtime may apply our own last update after it: it is told again what was asked for."""
    wanted = adjusted(scene)
    scene.group(GROUP, str(wanted.cpus))
    scene.happens(NriEvent.START_CONTAINER, dataclasses.replace(BOX, cpus="0-4"))
    agents.settle(scene.who, scene.site.clock)
    scene.who.runtime = cast("container_runtime.Runtime", scene.handler)
    scene.who.restore()
    assert scene.updates == [(BOX.id, "0-4")]
    assert scene.happens(NriEvent.UPDATE_CONTAINER, cpus="1").empty
    assert scene.updates[1:] == [(BOX.id, "1")]
    scene.handler.answer(on=False)
    assert scene.happens(NriEvent.UPDATE_CONTAINER, cpus="0-3").empty
    assert scene.updates[2:] == [(BOX.id, "0-3")]


def test_a_set_that_systemd_was_asked_for_is_in_the_runtime_s_record(scene: Scene) -> None:
    """The runtime writes its record again with every update, whoever wrote the file."""
    scene.happens(NriEvent.START_CONTAINER, dataclasses.replace(BOX, cpus="0-4"))
    wanted = action.SetUnitProperty(
        target="", value="1-2", unit="a.scope", properties=(), policy="p", reason="r",
        knob=knob.CPUSET_CPUS.name, group=GROUP,
    )  # fmt: skip
    step = plan.Step(order=0, action=wanted, was=None)
    scene.handler.on_results([result.Result("", result.Verdict.DONE, step=step)])

    assert scene.updates == [(BOX.id, "1-2")]


def test_a_container_that_never_started_is_told(scene: Scene) -> None:
    """At once, by its names, until it starts or its pod goes."""
    scene.sandbox()
    for _ in range(2):
        scene.happens(NriEvent.CREATE_CONTAINER)
        scene.happens(NriEvent.REMOVE_CONTAINER)
    assert list(scene.handler.unstarted) == ["default/new container main"]
    assert f"CPUs {be_pool(scene)}" in scene.handler.unstarted["default/new container main"]

    scene.happens(NriEvent.CREATE_CONTAINER)
    scene.group(GROUP, be_pool(scene))
    scene.happens(NriEvent.START_CONTAINER)
    assert scene.handler.unstarted == {}
    scene.happens(NriEvent.STOP_CONTAINER)
    assert scene.handler.unstarted == {}

    scene.happens(NriEvent.CREATE_CONTAINER)
    scene.happens(NriEvent.REMOVE_CONTAINER)
    scene.happens(NriEvent.REMOVE_POD_SANDBOX)
    assert scene.handler.unstarted == {}


def test_a_container_with_a_claim_starts_on_the_claims_cpus(scene: Scene) -> None:
    """Its pod is wider, for a sidecar; the answer and, before it runs, its own file are not."""
    boxes = (pod.Container(name="main", claims=("a",)), pod.Container(name="side"))
    user = moments.workload(
        "new", uid="u1", group=None, match="pod=u1", kube_qos=qos.KubeQos.BEST_EFFORT
    )
    observation = scene.who.tick.observation
    scene.who.tick.observation.extra_pods = (dataclasses.replace(user, containers=boxes),)
    observation.hold_claims([prepared_claims.claim("a", prepared_claims.cpus("0-4", 1))])
    scene.sandbox()
    around = scene.cpus("kubepods/besteffort/podu1")
    wanted = scene.happens(NriEvent.CREATE_CONTAINER).cpus
    scene.group(GROUP, around)
    scene.happens(NriEvent.START_CONTAINER)

    assert wanted is not None
    assert len(wanted) == 1
    assert wanted < cpuset.CPUSet.parse(around)
    assert scene.cpus(GROUP) == str(wanted)
    assert scene.happens(NriEvent.CREATE_CONTAINER, dataclasses.replace(BOX, name="side")).cpus == (
        cpuset.CPUSet.parse(around) - wanted
    )


def test_a_unit_that_was_made_with_our_set_has_none_afterwards(ram: Path) -> None:
    """A runtime with the systemd driver gives the set to the scope, which would write it again."""
    site = test_units.Site.of_services(ram)
    unit, box = "web.service", dataclasses.replace(BOX, cgroup="/system.slice/web.service")
    wanted = adjustment.Adjustment(cpus=cpuset.CPUSet.parse("1-3"))
    site.systemd.set(unit, "AllowedCPUs", dbus.Variant("ay", b"\x0e"))
    event = session.Heard(
        stream=1, event=NriEvent.START_CONTAINER, timeout=2.0, pod=POD, container=box
    )
    with site.agent() as who:
        given = start_check.Given(wanted=wanted, asked=box)
        start_check.StartCheck(agent=who).on_start(event, box.cgroup[1:], given, lambda: None)
        agents.settle(who, site.clock)
        assert (unit, "AllowedCPUs") in site.systemd.set_now
        assert not who.restore().failed

    assert site.systemd.set_now == {}
    effective = f"{test_units.TOP}/system.slice/{unit}/cpuset.cpus.effective"
    assert site.host.text(site.host.at(effective)).strip() == "0-3"
