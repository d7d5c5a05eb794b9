"""What the runtime's events mean for the agent, on a machine in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from koordlet.agent import container_runtime, lifecycle
from koordlet.agent.nri import handler as handlers
from koordlet.agent.nri import start_check
from koordlet.host.fs.root import HostPath
from koordlet.model import adjustment, cpuset
from koordlet.workloads.nri import session, trust
from koordlet.workloads.nri.messages import NriContainer, NriPod
from koordlet.workloads.nri.messages import NriEvent as Event
from tests.kit import agents, sites, trees

TOP = "/sys/fs/cgroup/cpuset"
POD = NriPod(
    id="s",
    uid="u1",
    namespace="default",
    name="new",
    labels={"koordinator.sh/qosClass": "BE"},
    cgroup_parent="/kubepods/besteffort/podu1",
)
BOX = NriContainer(
    id="c" * 64, pod="s", name="main", cgroup=f"/kubepods/besteffort/podu1/{'c' * 64}"
)
GROUP = BOX.cgroup.strip("/")


@dataclass
class Scene:
    """An agent and its handler."""

    site: agents.Site
    who: lifecycle.Agent
    handler: handlers.NriHandler
    updates: list[tuple[str, str]] = field(default_factory=list)

    def happens(
        self, event: Event, box: NriContainer = BOX, pod: NriPod = POD, cpus: str = ""
    ) -> adjustment.Adjustment:
        """What the handler answers."""
        container = NriContainer() if "POD" in event.name else box
        return self.handler.on_event(
            session.Heard(
                stream=1, event=event, timeout=2.0, pod=pod, container=container, cpus=cpus
            )
        )

    def known(self) -> set[str]:
        """UIDs of the workloads after the next pass."""
        self.who.one_pass(slow=True)
        return {pod.uid for pod in self.who.tick.observation.pods}

    def at(self, path: str) -> HostPath:
        """A place below the hierarchy of cpuset."""
        return self.site.host.at(f"{TOP}/{path}")

    def group(self, path: str, cpus: str) -> None:
        """Make a group as a runtime does."""
        made = ""
        for step in path.split("/"):
            made = f"{made}/{step}".strip("/")
            if not self.site.host.exists(self.at(made)):
                self.site.host.mkdir(self.at(made))
                self.site.host.write(self.at(f"{made}/cpuset.cpus"), f"{cpus}\n".encode())
                self.site.host.write(self.at(f"{made}/cpuset.mems"), b"0\n")

    def cpus(self, path: str) -> str:
        """A group's set."""
        return self.site.host.text(self.at(f"{path}/cpuset.cpus")).strip()

    def sandbox(self) -> None:
        """A pod arrives."""
        self.group("kubepods/besteffort/podu1", "0-4")
        self.happens(Event.RUN_POD_SANDBOX)


@contextlib.contextmanager
def stage(ram: Path) -> Iterator[Scene]:
    """Three declared workloads, and a runtime without a kubelet."""
    site = sites.workloads("v1", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        updates: list[tuple[str, str]] = []

        def update(box: str, wanted: adjustment.Adjustment) -> bool:
            updates.append((box, str(wanted.cpus)))
            return True

        handler = handlers.NriHandler(
            agent=who,
            trust=trust.StartTrust(2),
            alone=True,
            check=start_check.StartCheck(agent=who),
            run_pass=lambda: who.one_pass(slow=False),
            update=update,
            clock=lambda: site.clock().wall,
            answers=True,
        )
        yield Scene(site, who, handler, updates)


def silent(who: lifecycle.Agent) -> handlers.NriHandler:
    """A handler whose runtime cannot be reached, and which runs no pass."""
    return handlers.NriHandler(
        agent=who,
        alone=True,
        trust=trust.StartTrust(2),
        check=start_check.StartCheck(agent=who),
        run_pass=lambda: False,
        update=lambda *_: False,
        answers=True,
    )


@pytest.fixture
def scene(ram: Path) -> Iterator[Scene]:
    """The same for each test."""
    with stage(ram) as made:
        yield made


def be_pool(scene: Scene) -> str:
    """The set of best-effort work."""
    return scene.cpus("batch/jobs")


def test_a_pod_is_narrowed_before_its_containers(scene: Scene) -> None:
    """Its group has the pool when the sandbox is there; a container inherits it and is verified."""
    scene.sandbox()
    assert be_pool(scene) == scene.cpus("kubepods/besteffort/podu1") != "0-4"
    assert scene.happens(Event.CREATE_CONTAINER).empty
    scene.group(GROUP, be_pool(scene))
    scene.happens(Event.START_CONTAINER)

    assert (scene.handler.check.verified, scene.handler.check.wrong) == (1, 0)


def adjusted(scene: Scene) -> adjustment.Adjustment:
    """A container of a pod whose group nobody could narrow in time."""
    scene.group("kubepods/besteffort/podu1", "0-4")
    scene.handler.run_pass = lambda: False
    return scene.happens(Event.CREATE_CONTAINER)


def test_a_container_that_began_wrong_is_put_right(scene: Scene) -> None:
    """Before its first instruction, through its files."""
    adjusted(scene)
    scene.group(GROUP, "0-4")
    scene.handler.run_pass = lambda: scene.who.one_pass(slow=False)
    scene.happens(Event.START_CONTAINER)

    assert (be_pool(scene), 1) == (scene.cpus(GROUP), scene.handler.check.repaired)


def test_a_container_is_adjusted_and_put_back(scene: Scene) -> None:
    """Where it would not inherit it is given the pool; its original is what it would have had."""
    wanted = adjusted(scene)
    assert be_pool(scene) == str(wanted.cpus)
    assert scene.handler.adjusted == 1
    scene.group(GROUP, str(wanted.cpus))
    scene.happens(Event.START_CONTAINER)
    agents.settle(scene.who, scene.site.clock)
    assert be_pool(scene) == scene.cpus(GROUP)
    scene.who.restore()

    assert [scene.cpus(path) for path in (GROUP, "kubepods/besteffort/podu1")] == ["0-4", "0-4"]


def test_its_id_is_known_while_it_lives(scene: Scene) -> None:
    """From its beginning to its end, over a new connection, too: sources tell it later."""
    scene.sandbox()
    started = {("u1", "main"): BOX.id}
    scene.happens(Event.START_CONTAINER)
    assert started == scene.who.tick.announcements.started
    scene.happens(Event.STOP_CONTAINER)
    assert scene.who.tick.announcements.started == {}
    scene.handler.on_synchronize((POD,), (BOX,))
    assert started == scene.who.tick.announcements.started
    scene.handler.on_synchronize((POD,), ())
    assert scene.who.tick.announcements.started == {}


def test_a_short_life_is_not_held_against_us(scene: Scene) -> None:
    """Its end may be told before the news that it started: its process was there all the same."""
    adjusted(scene)
    scene.group(GROUP, "0-4")
    for event in (Event.POST_CREATE_CONTAINER, Event.START_CONTAINER, Event.STOP_CONTAINER):
        scene.happens(event)
    scene.happens(Event.POST_START_CONTAINER)

    assert (scene.handler.adjusted, scene.handler.failed) == (1, 0)
    assert scene.handler.trust.state.counted == {}


def test_limits_of_a_container_have_originals(scene: Scene) -> None:
    """CPU time and shares that it was given: what the runtime would have given comes back."""
    scene.group("kubepods/besteffort/podu1", "0-4")
    for name in ("cpu,cpuacct", "memory"):
        made = f"/sys/fs/cgroup/{name}"
        for step in GROUP.split("/"):
            made = f"{made}/{step}"
            scene.site.host.mkdir(scene.site.host.at(made))
    scene.group(GROUP, "0-4")
    cpu = f"/sys/fs/cgroup/cpu,cpuacct/{GROUP}"
    for file, text in (("cpu.shares", "512"), ("cpu.cfs_quota_us", "20000")):
        scene.site.host.write(scene.site.host.at(f"{cpu}/{file}"), f"{text}\n".encode())
    given = start_check.Given(
        wanted=adjustment.Adjustment(cpu_shares=512, cpu_milli=200, reasons={"batch_limits": "b"}),
        asked=NriContainer(id=BOX.id, shares=2),
    )
    heard = session.Heard(
        stream=1, event=Event.START_CONTAINER, timeout=2.0, pod=POD, container=BOX
    )
    scene.handler.check.on_start(heard, GROUP, given, lambda: None)
    entries = scene.who.book.entries

    assert (
        entries[f"{cpu}/cpu.shares"].original,
        entries[f"{cpu}/cpu.cfs_quota_us"].original,
    ) == ("2", "-1")
    assert entries[f"{cpu}/cpu.shares"].policy == "batch_limits"
    scene.who.restore()
    assert entries == {}
    assert scene.site.host.text(scene.site.host.at(f"{cpu}/cpu.shares")).strip() == "2"


def test_an_adjustment_is_cut_to_the_pod_s_group(scene: Scene) -> None:
    """On v1 a container that asks for more than its pod has would not start."""
    scene.handler.run_pass = lambda: False
    scene.group("kubepods/besteffort/podu2", "0-1")
    narrow = NriPod(
        id="t",
        uid="u2",
        namespace="default",
        name="cut",
        labels=POD.labels,
        cgroup_parent="/kubepods/besteffort/podu2",
    )

    assert str(scene.happens(Event.CREATE_CONTAINER, pod=narrow).cpus) == "1"


def test_an_update_gets_what_was_decided(scene: Scene) -> None:
    """Other CPUs are replaced, fewer and other fields are left; the record follows later writes."""
    scene.sandbox()
    scene.group(GROUP, be_pool(scene))
    agents.settle(scene.who, scene.site.clock)

    assert scene.happens(Event.UPDATE_CONTAINER, cpus="").empty
    assert scene.happens(Event.UPDATE_CONTAINER, cpus="2").empty
    assert be_pool(scene) == str(scene.happens(Event.UPDATE_CONTAINER, cpus="0-4").cpus)
    assert str(scene.happens(Event.UPDATE_CONTAINER, cpus="0-1").cpus) == "1"
    assert scene.handler.kept == 2
    scene.who.runtime = cast("container_runtime.Runtime", scene.handler)
    scene.who.restore()
    assert (BOX.id, "0-1") == scene.updates[-1]


def test_on_v2_the_group_above_cuts_an_update(ram: Path) -> None:
    """A container that inherits is given no set of its own, which nobody would put back."""
    site = sites.workloads("v2", ram)
    top, made = trees.top("v2"), ""
    for step in GROUP.split("/"):
        switches = site.host.at(f"{top}/{made}".rstrip("/") + "/cgroup.subtree_control")
        site.host.write(switches, b"+cpuset\n")
        made = f"{made}/{step}".strip("/")
        site.host.mkdir(site.host.at(f"{top}/{made}"))
    with site.agent() as who:
        handler = silent(who)
        scene = Scene(site, who, handler)
        scene.happens(Event.RUN_POD_SANDBOX)
        agents.settle(who, site.clock)

        assert site.host.text(site.host.at(f"{top}/{GROUP}/cpuset.cpus.effective")).strip() != "0-4"
        assert scene.happens(Event.UPDATE_CONTAINER, cpus="0-7").empty
        assert handler.kept == 0


def test_what_crun_nests_in_a_scope(ram: Path) -> None:
    """What it was given is inside, where crun puts it; the scope has its weight alone."""
    site = sites.workloads("v2", ram)
    pod = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu1.slice"
    scope, top, made = f"{pod}/cri-containerd-{'c' * 64}.scope", trees.top("v2"), ""
    for step in f"{scope}/container".split("/"):
        switches = site.host.at(f"{top}/{made}".rstrip("/") + "/cgroup.subtree_control")
        site.host.write(switches, b"+cpuset +cpu +memory\n")
        made = f"{made}/{step}".strip("/")
        site.host.mkdir(site.host.at(f"{top}/{made}"))
    inside = {"cpuset.cpus": "1", "cpu.max": "20000 100000", "cpu.weight": "20"}
    for name, text in inside.items():
        site.host.write(site.host.at(f"{top}/{made}/{name}"), f"{text}\n".encode())
    site.host.write(site.host.at(f"{top}/{scope}/cpu.weight"), b"20\n")
    named = f"kubepods-besteffort-podu1.slice:cri-containerd:{'c' * 64}"
    box = replace(BOX, cgroup=named, cpus="1", shares=2)
    wanted = adjustment.Adjustment(
        cpus=cpuset.CPUSet.parse("1"), cpu_shares=512, cpu_milli=200, reasons={"batch_limits": "b"}
    )
    with site.agent() as who:
        handler = silent(who)
        handler._given[box.id] = start_check.Given(wanted=wanted, asked=replace(box, cpus=""))
        Scene(site, who, handler).happens(Event.START_CONTAINER, box=box)

        journal = {
            path.removeprefix(f"{top}/{scope}/"): entry.original
            for path, entry in who.book.entries.items()
            if path.startswith(f"{top}/{scope}/")
        }
        assert journal == {
            "cpu.weight": "1",
            "container/cpuset.cpus": "",
            "container/cpu.weight": "1",
            "container/cpu.max": "max 100000",
        }
        who.restore()
        files = ("container/cpuset.cpus", "container/cpu.max", "container/cpu.weight", "cpu.weight")
        texts = [site.host.text(site.host.at(f"{top}/{scope}/{name}")).strip() for name in files]
        assert texts == ["", "max 100000", "1", "1"]


def test_who_knows_a_pod(scene: Scene) -> None:
    """A declared workload is itself, also for the runtime; a pod below another root is nobody's."""
    web = NriPod(id="w", uid="w", name="web", cgroup_parent="/web")
    scene.happens(Event.RUN_POD_SANDBOX, pod=web)
    names = [pod.key for pod in scene.who.tick.observation.pods]
    assert len(names) == len(set(names))
    outside = NriPod(id="o", uid="o", name="o", cgroup_parent="/../etc")
    assert scene.happens(Event.CREATE_CONTAINER, pod=outside).empty


def test_a_pod_that_is_removed_or_not_listed_is_forgotten(scene: Scene) -> None:
    """One that is removed, and one that a new connection does not list, is known no more."""
    scene.sandbox()
    assert "u1" in scene.known()
    scene.happens(Event.REMOVE_POD_SANDBOX)
    assert "u1" not in scene.known()
    scene.handler.on_synchronize([POD], [])
    assert "u1" in scene.known()
    scene.handler.on_synchronize([], [])
    assert "u1" not in scene.known()


def test_containers_that_never_start_end_the_adjusting(scene: Scene) -> None:
    """Containers that never start end our adjusting; one whose answer was late does not count."""
    for number in range(2):
        box = NriContainer(id=f"{number}", name=f"c{number}", cgroup=BOX.cgroup)
        scene.group("kubepods/besteffort/podu1", "0-4")
        scene.handler.run_pass = lambda: False
        assert not scene.happens(Event.CREATE_CONTAINER, box).empty
        scene.happens(Event.STOP_CONTAINER, box)
    last = NriContainer(id="9", name="c9", cgroup=BOX.cgroup)

    assert scene.happens(Event.CREATE_CONTAINER, last).empty
    assert (scene.handler.failed, scene.handler.trust.state.ceased) == (2, True)


def test_a_late_answer_is_no_answer(scene: Scene) -> None:
    """What becomes of that container says nothing about us."""
    assert not adjusted(scene).empty
    scene.handler.on_timeout(
        session.Heard(stream=1, event=Event.CREATE_CONTAINER, timeout=2.0, pod=POD, container=BOX)
    )
    scene.happens(Event.STOP_CONTAINER)

    assert scene.handler.failed == 0


def test_a_failure_is_said_and_costs_one_event(scene: Scene) -> None:
    """The asker gets the exception and starts the container as it is."""
    scene.who.tick.announcements.pods.add = _broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of order"):
        scene.sandbox()


def _broken(*_: object, **__: object) -> None:
    msg = "out of order"
    raise RuntimeError(msg)


def test_a_closed_handler_and_an_observing_agent(scene: Scene) -> None:
    """Neither adjusts anything."""
    scene.handler.answers = False
    assert scene.happens(Event.CREATE_CONTAINER).empty
    scene.handler.answers = True
    scene.who.switch(enforce=False)
    scene.group("kubepods/besteffort/podu1", "0-4")

    assert scene.happens(Event.CREATE_CONTAINER).empty
    assert scene.cpus("kubepods/besteffort/podu1") == "0-4"
    assert cpuset.CPUSet.parse("0-4") == scene.handler.check.cpus("kubepods/besteffort/podu1")
