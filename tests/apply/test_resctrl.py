"""Resource control on the machine in memory: written, refused, contested, killed, put back."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import tempfile
from pathlib import Path

import pytest

from koordlet.apply import resctrl
from koordlet.host.fs import root
from koordlet.model import action, qos, result
from koordlet.policy.resctrl import annotation
from koordlet.state import journal
from tests.kit import agents, images, moments
from tests.kit import resctrl as kit
from tests.kit.kernel import KernelHost

WISHES = (
    "intel",
    "intel,cdp,l2,cbm=20",
    "amd",
    "amd,cbm=12,cos=4",
    "intel,nol3",
    "intel,nomba",
    "intel,nomon",
    "intel,l2,nol3,nomba",
    "intel,mba=77",
)
LIMITED = ", beClass: {mbaPercent: 45}"


def made(rdt: str, state: Path, more: str = LIMITED) -> agents.Site:
    """A site on a fresh machine."""
    return kit.site(kit.machine(rdt, mount="cdp" if "cdp" in rdt else ""), state, more)


@pytest.mark.parametrize("rdt", WISHES)
def test_every_machine_is_limited_and_put_back(ram: Path, rdt: str) -> None:
    """Groups, values and threads come, nothing is written twice, and all of it goes again."""
    site = made(rdt, ram)
    before = site.image()
    site.settle()
    refused = [call for call in site.host.calls if call.errno]
    batch = kit.pids(site.host, "batch")
    assert ([], batch) == (refused, kit.inside(site.host, "BE"))

    count = len(site.host.calls)
    site.settle()
    assert count == len(site.host.calls)

    done = site.restore()
    assert (done.left, done.failed) == ((), ())
    assert images.difference(before, site.image()) == {}
    assert site.restore().restored == 0


@pytest.mark.parametrize("act", ["settle", "restore"])
@pytest.mark.parametrize("reused", [False, True])
def test_killed_at_any_change(ram: Path, act: str, reused: bool) -> None:
    """Whatever change the kill came at, the next restore gives back the machine of before."""
    for number, done in ((step // 2 + 1, bool(step % 2)) for step in itertools.count()):
        site = made("intel", Path(tempfile.mkdtemp(dir=ram)))
        if reused:
            _adopted(site.host)
        before = site.image()
        if act == "restore":
            site.settle()
        if not site.dies(getattr(site, act), number, done=done):
            assert number > 3, "hardly any change"
            return
        if act == "settle":
            site.settle()
        undone = site.restore()
        assert (undone.left, undone.failed) == ((), ()), number
        assert images.difference(before, site.image()) == {}, number


def _adopted(host: KernelHost) -> None:
    """A group of ours that was there before us, with values of its own."""
    host.mkdir(host.at(f"{kit.PLACE}/BE"))
    host.write(host.at(f"{kit.PLACE}/BE/schemata"), b"L3:0=ff;1=7\n")
    host.calls.clear()


def test_one_bad_domain_costs_itself() -> None:
    """The kernel refuses one value: the others are written, and its words are reported."""
    host = kit.machine()
    host.mkdir(host.at(f"{kit.PLACE}/BE"))
    write = action.WriteFile(
        target=f"{kit.PLACE}/BE/schemata",
        value="L3:0=f;1=5\nMB:0=50",
        policy="resctrl",
        reason="test",
        knob="schemata",
    )
    written, difference = resctrl.write(host, write)

    assert "MB:0=50" in written
    assert difference == "L3:1=5: EINVAL The mask 5 has non-consecutive 1-bits"
    assert kit.values(host, "BE")["L3"] == {0: 0xF, 1: 0xFFF}


def test_nothing_taken_is_a_refusal_in_the_kernels_words() -> None:
    """All refused: an error that says why, not a half success."""
    host = kit.machine()
    write = action.WriteFile(
        target=f"{kit.PLACE}/schemata", value="L3:0=0", policy="p", reason="r", knob="schemata"
    )
    with pytest.raises(resctrl.RefusedError) as caught:
        resctrl.write(host, write)

    assert (
        caught.value.errno,
        resctrl.words(caught.value),
    ) == (errno.EINVAL, "L3:0=0: EINVAL Mask out of range")


def move(*pids: int) -> action.MoveTasks:
    """The threads of the batch workload go to the BE group."""
    return action.MoveTasks(
        target=f"{kit.PLACE}/BE/tasks",
        pids=pids,
        policy="resctrl",
        reason="test",
        threads_of=("/sys/fs/cgroup/cpuset/batch/tasks",),
        taken_from=(f"{kit.PLACE}/tasks",),
    )


def test_what_was_forked_meanwhile_comes_along() -> None:
    """A thread that forks between being listed and being moved loses no child."""
    host = kit.machine()
    host.mkdir(host.at(f"{kit.PLACE}/BE"))
    (parent,) = kit.pids(host, "batch")
    assert host.resctrl is not None
    fork = host.resctrl.fork
    children: list[int] = []

    class Forking(agents.Watched):
        def write(self, path: root.HostPath, data: bytes) -> None:
            if not children:
                children.append(fork(parent))
            super().write(path, data)

    assert resctrl.move(Forking(host, lambda: None), move(parent)) == ("2 threads", "")
    assert [parent, *children] == kit.inside(host, "BE")


def test_who_forked_nothing_is_not_listed_again() -> None:
    """Hundreds of containers are asked again only while there are new threads where they were."""
    host = kit.machine()
    host.mkdir(host.at(f"{kit.PLACE}/BE"))
    (thread,) = kit.pids(host, "batch")
    read: list[str] = []

    class Reading(agents.Watched):
        def read(self, path: root.HostPath) -> bytes:
            read.append(str(path))
            return super().read(path)

    assert resctrl.move(Reading(host, lambda: None), move(thread)) == ("1 threads", "")
    assert [f"{kit.PLACE}/tasks"] * 2 == read


def test_a_thread_that_ended_is_where_it_should_be() -> None:
    """ESRCH is no refusal."""
    host = kit.machine()
    host.mkdir(host.at(f"{kit.PLACE}/BE"))
    ended = dataclasses.replace(move(99_999), threads_of=())

    assert resctrl.move(host, ended) == ("0 threads", "")


def test_foreign_groups_are_never_touched(ram: Path) -> None:
    """Neither their values nor their threads, also where they hold those of a workload."""
    host = kit.machine()
    host.mkdir(host.at(f"{kit.PLACE}/alien"))
    (thread,) = kit.pids(host, "batch")
    host.write(host.at(f"{kit.PLACE}/alien/tasks"), b"%d\n" % thread)
    site = kit.site(host, ram)
    host.calls.clear()
    site.settle()

    assert [thread] == kit.inside(host, "alien")
    assert [call for call in host.calls if "alien" in call.path] == []


def test_a_group_deleted_under_us_comes_back(ram: Path) -> None:
    """The next pass makes it again, with its values and threads."""
    site = made("intel", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        site.host.rmdir(site.host.at(f"{kit.PLACE}/BE"))
        agents.settle(who, site.clock)

    assert kit.values(site.host, "BE")["L3"] == {0: 0xF, 1: 0xF}
    assert kit.pids(site.host, "batch") == kit.inside(site.host, "BE")


def test_unmounted_under_us_costs_one_event(ram: Path) -> None:
    """A condition, nothing refused, and nothing left to put back."""
    site = made("intel", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        site.host.unmount(site.host.at(kit.PLACE))
        count = len(site.host.calls)
        who.one_pass(slow=False)
        assert who.publisher.view is not None
        conditions = [
            condition.type for condition in who.publisher.view.plan.conditions if condition.status
        ]
        agents.settle(who, site.clock)
        assert count == len(site.host.calls)
        done = who.restore()

    assert conditions == ["ResctrlUnmounted"]
    assert (done.left, done.failed) == ((), ())


def test_somebody_else_changes_one_domain(ram: Path) -> None:
    """He is overruled after a pause, and at the end his value is the original of that domain."""
    host = kit.machine()
    _adopted(host)
    site = kit.site(host, ram, LIMITED)
    with site.agent() as who:
        agents.settle(who, site.clock)
        host.write(host.at(f"{kit.PLACE}/BE/schemata"), b"L3:1=3f\n")
        agents.settle(who, site.clock)
        assert kit.values(host, "BE")["L3"] == {0: 0xF, 1: 0xF}
        who.restore()

    assert kit.values(host, "BE")["L3"] == {0: 0xFF, 1: 0x3F}


def test_his_value_stays_when_it_still_stands(ram: Path) -> None:
    """Restoring is three-way for each domain, and says what it left."""
    host = kit.machine()
    _adopted(host)
    site = kit.site(host, ram, LIMITED)
    site.settle()
    host.write(host.at(f"{kit.PLACE}/BE/schemata"), b"L3:1=3f\n")
    done = site.restore()

    assert kit.values(host, "BE")["L3"] == {0: 0xFF, 1: 0x3F}
    assert [left.detail for left in done.left] == ["another program has written L3:1=3f since"]


def test_a_domain_that_is_back_or_gone_already_is_nobodys_write() -> None:
    """Only a domain that still holds our value is put back; one that holds its original is left."""
    entry = journal.Entry(
        kind="WriteFile",
        target=f"{kit.PLACE}/BE/schemata",
        policy="resctrl",
        original="L3:0=ff;1=ff;2=ff",
        values=("L3:0=f;1=f;2=f",),
    )

    assert resctrl.undo(entry, "L3:0=ff;1=f") == ("L3:1=ff", "")


def test_a_cache_goes_offline_and_comes_back_full(ram: Path) -> None:
    """Its domain disappears from the plan, and is limited again when it returns."""
    site = made("intel", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        for cpu in range(4, 8):
            site.host.set_online(cpu, online=False)
        agents.settle(who, site.clock)
        assert kit.values(site.host, "BE")["L3"] == {0: 0xF}
        for cpu in range(4, 8):
            site.host.set_online(cpu, online=True)
        agents.settle(who, site.clock)

    assert kit.values(site.host, "BE")["L3"] == {0: 0xF, 1: 0xF}


def test_a_mount_of_ours_with_foreign_groups_stays(ram: Path) -> None:
    """Made on request, with the options asked for; what it holds is named."""
    host = kit.machine("intel,cdp,cbm=20", mount=None)
    site = kit.site(host, ram, ", mount: true, mountOptions: [cdp]")
    site.settle()
    assert kit.values(host, "BE")["L3CODE"][0] == 0x3F

    host.mkdir(host.at(f"{kit.PLACE}/alien"))
    kept = site.restore()
    assert [o.detail.split(": ")[1] for o in kept.left] == ["it holds the groups alien"]
    assert "alien" in host.list(host.at(kit.PLACE))


def test_an_own_mount_goes_at_the_end(ram: Path) -> None:
    """Mounted, used, unmounted: nothing is left."""
    host = kit.machine("intel", mount=None)
    site = kit.site(host, ram, ", mount: true")
    before = site.image()
    site.settle()
    done = site.restore()

    assert host.list(host.at(kit.PLACE)) == []
    assert images.difference(before, site.image()) == {}
    assert done.failed == ()


def test_what_a_pod_asks_for_no_longer_is_in_force_no_longer(ram: Path) -> None:
    """Its annotation changes while it runs: a limit that is gone from there goes in its group."""
    ways, share = {"schemata": {"range": [0, 50]}}, {"schemata": {"percent": 20}}
    site = kit.site(kit.machine(), ram)
    seen = []
    for wish in ({"llc": ways, "mb": share}, {"llc": ways}, {"mb": share}):
        text = {annotation.KEY: json.dumps(wish)}
        site.pods = (moments.workload("web", qos.Qos.LSR, annotations=text),)
        site.settle()
        values = kit.values(site.host, "koordlet-uid-web")
        seen.append((values["L3"][0], values["MB"][0]))

    assert seen == [(0x3F, 20), (0x3F, 100), (0xFFF, 20)]


def test_no_room_is_explained_once(ram: Path) -> None:
    """Somebody takes the last class between look and mkdir: ENOSPC with the kernel's reason."""
    host = kit.machine("intel,cos=4")
    site = kit.site(host, ram)
    host.refuse(f"{kit.PLACE}/BE", errno.ENOSPC, kinds=("mkdir",))
    with site.agent() as who:
        drafted = who.tick.draft(who.book.entries)
        results = list(who.executor.run(drafted.draft, drafted.snapshot))

    assert {r.detail.split(":")[0] for r in results if r.target.endswith("/BE")} == {"ENOSPC"}
    assert kit.pids(host, "web") == kit.inside(host, "LSR")


def test_half_written_by_ourselves_is_not_contested() -> None:
    """After a kill between two domains, each has our value or the original's."""
    entry = journal.Entry(
        kind="WriteFile",
        target="/r/BE/schemata",
        policy="resctrl",
        original="L3:0=fff;1=fff",
        values=("L3:0=f;1=f",),
    )

    assert resctrl.undisturbed(entry, "L3:0=00f;1=fff")
    assert not resctrl.undisturbed(entry, "L3:0=00f;1=0ff")
    assert resctrl.original(entry, "L3:0=00f;1=0ff") == "L3:0=fff;1=ff"


def test_nothing_is_tried_in_a_group_that_cannot_be_made(ram: Path) -> None:
    """On a read-only mount groups are asked for with growing pauses, what is in them is not."""
    site = made("intel", ram)
    for name in ("LSR", "LS", "BE"):
        site.host.refuse(f"{kit.PLACE}/{name}", errno.EROFS, times=99)
    verdicts: list[result.Verdict] = []
    with site.agent() as who:
        for _ in range(2):
            plan = who.tick.draft(who.book.entries)
            verdicts = [outcome.verdict for outcome in who.executor.run(plan.draft, plan.snapshot)]
        inside = f"{kit.PLACE}/BE/"
        assert [target for target in who.book.entries if target.startswith(inside)] == []

    assert {result.Verdict.WAITING} == set(verdicts)
    for name in ("LSR", "LS", "BE"):
        site.host.refuse(f"{kit.PLACE}/{name}", errno.EROFS, times=0)
    site.clock.tick(600)
    site.settle()
    assert kit.pids(site.host, "batch") == kit.inside(site.host, "BE")
