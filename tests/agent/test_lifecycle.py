"""One agent over its life: memory, locks, hand-over, switching, what it says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from koordlet.agent import lifecycle, node_shutdown, restore
from koordlet.apply import local_eviction
from koordlet.model import errors, plan, pod, qos
from koordlet.policy.framework import registry
from koordlet.state import handover, journal, lock, records
from tests.kit import agents, images, moments, sites


@pytest.fixture
def site(ram: Path) -> agents.Site:
    """Three workloads on cgroup v1."""
    return sites.workloads("v1", ram)


def audited(site: agents.Site) -> list[dict[str, object]]:
    """The audit log."""
    return [json.loads(line) for line in site.paths.audit.read_text().splitlines()]


def test_every_change_is_audited(site: agents.Site) -> None:
    """Each change has a line with policy, reason, workload, the value before and after."""
    site.settle()
    site.restore()
    records = audited(site)

    assert len(site.host.calls) == len(records)
    for record in records:
        assert {"at", "policy", "reason", "target", "value", "was", "verdict"} <= set(record)
        assert record["reason"]
    assert {record["undo"] for record in records} == {True, False}
    assert {"host/web"} <= {record.get("pod") for record in records if not record["undo"]}


def test_each_plan_has_a_name(site: agents.Site) -> None:
    """What was done together has one name in the audit log; the next plan has another."""
    site.settle()
    site.restore()
    plans: dict[object, set[object]] = {}
    for record in audited(site):
        plans.setdefault(record["plan"], set()).add(record["undo"])

    assert {frozenset({False}), frozenset({True})} == {frozenset(each) for each in plans.values()}


def test_a_settled_agent_writes_nothing(site: agents.Site) -> None:
    """Two rounds of every lane beside the same pods: no change, no line of audit or journal."""

    def written() -> tuple[int, int, bytes]:
        return len(site.host.calls), len(audited(site)), site.paths.journal.read_bytes()

    with site.agent() as who:
        agents.settle(who, site.clock)
        before = written()
        for number in range(20):
            site.clock.tick()
            assert not who.tick.protection_broken(who)
            assert not who.one_pass(slow=number % 10 == 0)

        assert written() == before


@pytest.mark.parametrize(("threshold", "compared"), [("45%", False), ("95%", True)])
def test_near_a_threshold_workloads_are_compared_already(
    site: agents.Site, threshold: str, compared: bool
) -> None:
    """All memory is available here: whoever has to go is chosen by counters of that moment."""
    limits = f"{{evictionHard: {{memory.available: {threshold}}}}}"
    site.config = f"policies: {{node_pressure: {limits}}}\n"
    with site.agent() as who:
        who.one_pass(slow=True)

        assert compared is who.tick.usage.comparing


def test_one_agent_over_a_state_directory(site: agents.Site) -> None:
    """A second agent is refused while the first lives, and welcome afterwards."""
    with site.agent(), pytest.raises(errors.TakenError), site.agent():
        pass
    with site.agent() as who:
        assert not who.overdue()


def test_descriptors_are_given_back(site: agents.Site) -> None:
    """An agent that closes leaves no handle on the machine."""
    with site.agent() as who:
        agents.settle(who, site.clock)

    assert site.host.open_handles == 0


def test_policies_remember_across_agents(site: agents.Site) -> None:
    """What a v1 group wanted before it was narrowed is known to the next agent."""
    site.settle()
    site.config = site.config.replace('cpus: "2-3"', 'cpus: "4"')
    site.settle()

    second = site.host.text(site.host.at("/sys/fs/cgroup/cpuset/api/two/cpuset.cpus"))
    first = site.host.text(site.host.at("/sys/fs/cgroup/cpuset/api/one/cpuset.cpus"))
    assert (second, first) == ("1\n", "1-3\n")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"state": {"wishes": 7}}'])
def test_a_broken_checkpoint_costs_one_memory(site: agents.Site, content: bytes) -> None:
    """A damaged checkpoint is discarded; the agent works and restores all the same."""
    before = site.image()
    site.settle()
    for path in site.paths.checkpoints.iterdir():
        path.write_bytes(content)
    site.settle()

    assert site.restore().failed == ()
    assert images.difference(before, site.image()) == {}


def test_an_audit_log_that_cannot_be_written_costs_its_lines(site: agents.Site) -> None:
    """A file where its directory must be: the agent works, and health says how many were lost."""
    where = site.paths.audit.parent
    where.parent.mkdir(parents=True, exist_ok=True)
    where.touch()
    with site.agent() as who:
        agents.settle(who, site.clock)
        assert who.publisher.view is not None
        checks = {check.name: check for check in who.publisher.view.checks}

    assert site.host.calls
    assert f"{len(site.host.calls)} lines lost" == checks["audit"].detail


@pytest.mark.parametrize("name", ["journal", "checkpoints"])
def test_state_that_cannot_be_opened_is_said(site: agents.Site, name: str) -> None:
    """A file where a directory must be, or the reverse, names the culprit; the lock is free."""
    path: Path = getattr(site.paths, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if name == "journal":
        path.mkdir()
    else:
        path.touch()
    words = {"journal": "not a regular file", "checkpoints": "cannot open the agent's own files"}
    with pytest.raises(errors.HostError, match=words[name]) as refused, site.agent():
        pass
    free = lock.Lock(site.paths.lock)
    free.acquire()
    free.release()

    assert str(site.state) in refused.value.culprit
    assert "--state-dir" in refused.value.fix


def test_a_failing_policy_leaves_its_changes(ram: Path) -> None:
    """A policy that begins to fail keeps what it wrote, the others go on, and it is counted."""
    site = sites.workloads("v1", ram)
    site.rows = (*registry.POLICIES, agents.fixed())
    site.host.mkdir(site.host.at("/sys/fs/cgroup/cpuset/extra"))
    site.settings = {"fixed": agents.Sets(cpus={"extra": "1"})}
    with site.agent() as who:
        agents.settle(who, site.clock)
        who.tick.extra_settings = {"fixed": agents.Sets(error=RuntimeError("broken"))}
        site.host.write(site.host.at("/sys/fs/cgroup/cpuset/web/cpuset.cpus"), b"0-4")
        who.one_pass(slow=True)
        view = who.publisher.view

    assert view is not None
    assert dict(view.counters.failures) == {"fixed": 1}
    assert site.host.text(site.host.at("/sys/fs/cgroup/cpuset/extra/cpuset.cpus")) == "1\n"
    assert site.host.text(site.host.at("/sys/fs/cgroup/cpuset/web/cpuset.cpus")) == "2-3\n"
    assert [check.name for check in view.checks if not check.ok] == ["policies"]


@pytest.mark.parametrize("mode", [plan.Mode.OFF, plan.Mode.SHADOW])
def test_a_policy_that_is_switched_off_puts_back(site: agents.Site, mode: plan.Mode) -> None:
    """Switched off or into the shadow, a policy's changes go back as on a restore."""
    before = site.image()
    site.settle()
    site.modes = {"shared_pools": mode}
    site.settle()

    assert images.difference(before, site.image()) == {}


def test_a_hand_over_records_a_deadline_for_the_successor(
    site: agents.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deadline is recorded for the successor, seen as overdue once it passes, never before."""
    monkeypatch.setattr("koordlet.host.machine.boottime", lambda: 1000.0)
    with site.agent() as who:
        agents.settle(who, site.clock)
        seconds = who.hand_over()
        early = who.overdue()
        monkeypatch.setattr("koordlet.host.machine.boottime", lambda: 1001.0 + seconds)
        late = who.overdue()
        restored = who.restore(final=False)
        kept = who.handover.read()
        who.restore()

    assert (seconds, early, late) == (120.0, False, True)
    assert restored.restored > 3
    assert isinstance(kept, handover.Deadline)
    assert None is who.handover.read()


def test_switching_to_observe_and_back(site: agents.Site) -> None:
    """Ceasing to act puts everything back; beginning again puts everything in place."""
    before = site.image()
    with site.agent() as who:
        agents.settle(who, site.clock)
        placed = site.image()
        who.switch(enforce=False)
        ceased = site.image()
        who.one_pass(slow=True)
        watched = site.image()
        who.switch(enforce=True)
        agents.settle(who, site.clock)
        again = site.image()

    assert {} == images.difference(before, ceased) == images.difference(before, watched)
    assert images.difference(placed, again) == {}


def test_what_delays_shutdowns_learns_of_each_switch_once_it_holds(site: agents.Site) -> None:
    """Its lock follows the mode: an agent that observes ends nobody."""
    modes: list[bool] = []

    def made(agent: lifecycle.Agent) -> node_shutdown.NodeShutdown:
        class Shutdown(node_shutdown.NodeShutdown):
            def follow_mode(self) -> None:
                modes.append(agent.enforce)

        return Shutdown(
            (),
            workloads=list,
            end=local_eviction.LocalEviction(agent.tick.host, agent.tick.observer.layout),
            report=agent.publisher.record_alone,
            acting=lambda: agent.enforce,
            record=agent.paths.node_shutdown,
        )

    wired = lifecycle.Wiring(shutdown=made)
    agent = lifecycle.Agent(site.line(), site.paths, enforce=True, wired=wired)
    try:
        agent.switch(enforce=False)
        agent.switch(enforce=True)
    finally:
        agent.restore()
        agent.close()

    assert modes == [False, True]


def test_an_observer_changes_nothing(site: agents.Site) -> None:
    """Without leave to act the plan is shown as a shadow and nothing is written anywhere."""
    who = lifecycle.Agent(site.line(), site.paths, enforce=False)
    try:
        assert not who.one_pass(slow=True)
        view = who.publisher.view
    finally:
        who.close()

    assert view is not None
    assert site.host.calls == []
    assert {plan.Mode.SHADOW} == {step.mode for step in view.plan.steps}


def test_restoring_gives_up_after_some_passes(site: agents.Site) -> None:
    """What is refused for good is reported as failed, and kept for the next attempt."""
    site.settle()
    target = "/sys/fs/cgroup/cpuset/web/cpuset.cpus"
    site.host.refuse(target, 5, times=99)
    with site.agent() as who:
        done = restore.restore(who.tick, who.executor)
        kept = set(who.book.entries)

    assert [target] == [step.target for step in done.failed]
    assert {target} == kept


def newcomer(name: str) -> pod.Pod:
    """A pod that nobody has listed yet, and that asks for a CPU of its own."""
    return moments.workload(name, qos.Qos.LSR, cpu_count=1, match=f"pod={name}", group=None)


def held(site: agents.Site) -> dict[str, str]:
    """What the checkpoint says: holder to CPUs."""
    body = json.loads((site.paths.checkpoints / "exclusive_cpus.json").read_text())
    return {holding["holder"]: holding["cpus"] for holding in body["state"]["holdings"]}


def test_a_container_is_admitted_before_anybody_lists_its_pod(site: agents.Site) -> None:
    """What it is given is held at once, on disk, in later passes and for the next newcomer."""
    site.config = site.config.replace('cpus: "2-3"', 'cpus: "2"')
    with site.agent() as who:
        agents.settle(who, site.clock)
        first = who.tick.adjust(who, newcomer("one"), "main")
        assert str(first.cpus) == held(site)["t/one"]
        site.clock.tick()
        who.one_pass(slow=False)
        second = who.tick.adjust(who, newcomer("two"), "main")
        again = who.tick.adjust(who, newcomer("one"), "main")

    assert (str(first.cpus), str(second.cpus), str(again.cpus)) == ("1", "3", "1")
    assert {"t/one", "t/two"} <= held(site).keys()


def test_a_pod_that_was_announced_and_never_came(site: agents.Site) -> None:
    """Its CPUs are free after a while, or at once when the runtime says that it is gone."""
    with site.agent() as who:
        agents.settle(who, site.clock)
        for name in ("one", "two"):
            who.tick.adjust(who, newcomer(name), "main")
        who.tick.announcements.pods.departed("uid-one")
        site.clock.tick()
        who.one_pass(slow=False)
        assert held(site).keys() & {"t/one", "t/two"} == {"t/two"}
        for _ in range(61):
            site.clock.tick()
        who.one_pass(slow=False)

    assert set() == held(site).keys() & {"t/one", "t/two"}


def test_a_state_directory_of_somebody_else(site: agents.Site) -> None:
    """One that others may write to is refused by name, with what to do, before anything is made."""
    site.state.chmod(0o777)
    with pytest.raises(errors.HostError, match="others can write") as refused, site.agent():
        pass

    assert (str(site.state), True) == (refused.value.culprit, "chmod" in refused.value.fix)
    assert not site.paths.lock.exists()


@pytest.mark.parametrize("name", ["lock", "journal"])
def test_a_pipe_in_the_place_of_a_file(site: agents.Site, name: str) -> None:
    """A start does not wait for somebody at its other end: it is refused, and says what to move."""
    path: Path = getattr(site.paths, name)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(errors.HostError, match=r"pipe|not a regular file") as refused, site.agent():
        pass

    assert str(path) == refused.value.culprit
    assert f"move {path} away" in refused.value.fix


def test_links_are_not_followed(site: agents.Site, ram: Path) -> None:
    """Wherever one of our files is a link, what it leads to is neither truncated nor written."""
    site.settle()
    precious = ram / "precious"
    precious.write_text("precious")
    for path in (
        site.paths.journal.with_name("journal.new"),
        site.paths.audit,
        site.paths.handover,
    ):
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
    for path in site.paths.checkpoints.iterdir():
        path.unlink()
        path.symlink_to(precious)
    site.settle()
    site.restore()

    assert precious.read_text() == "precious"


def test_an_entry_of_the_journal_that_is_none_of_ours(site: agents.Site) -> None:
    """It is skipped and told; nothing is written there, and what is ours is put back."""
    before = site.image()
    site.settle()
    forged = journal.Entry(
        kind="WriteFile", target="/proc/sys/kernel/core_pattern", policy="shared_pools",
        original="|/bin/sh", values=("core",), sure=True,
    )  # fmt: skip
    with site.paths.journal.open("ab") as file:
        file.write(records.intent(forged))
    with site.agent() as who:
        assert forged.target not in who.book.entries
        assert any(
            "never writes to '/proc/sys/kernel/core_pattern'" in words for words in who.book.damage
        )

    assert site.restore().failed == ()
    assert images.difference(before, site.image()) == {}
