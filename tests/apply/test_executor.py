"""A refusal costs one item and what relied on it; contention is paced; nothing is said twice."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from koordlet.agent import lifecycle
from koordlet.apply import refusals
from koordlet.model import action, errors, result
from tests.apply.four import TREE, group
from tests.kit import agents, images, sites, trees
from tests.kit.kernel import KernelHost

Verdict = result.Verdict


def one_pass(site: agents.Site) -> dict[str, result.Result]:
    """The last result of each target of one pass of a fresh agent."""
    with site.agent() as who:
        return site_pass(who)


def site_pass(who: lifecycle.Agent) -> dict[str, result.Result]:
    """The same for an agent that is there."""
    made = who.tick.draft(who.book.entries)
    return {outcome.target: outcome for outcome in who.executor.run(made.draft, made.snapshot)}


@pytest.mark.parametrize("path", ["a", "a/b", "c", "d"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EBUSY, errno.ENOSPC, errno.EINVAL])
def test_a_refusal_costs_one_item(
    site: agents.Site, host: KernelHost, path: str, number: int
) -> None:
    """Whichever write is refused, only it and what is above or below it stays undone."""
    before = site.image()
    refused = trees.file(TREE, path)
    host.refuse(refused, number, times=99)
    results = one_pass(site)

    near = {"a", "a/b"} if path.startswith("a") else {path}
    assert Verdict.REFUSED is results[refused].verdict
    assert errno.errorcode[number] in results[refused].detail
    for distant in {"a", "a/b", "c", "d"} - near:
        assert Verdict.DONE is results[trees.file(TREE, distant)].verdict
    assert {Verdict.DONE, Verdict.SKIPPED, Verdict.REFUSED} >= {
        results[trees.file(TREE, affected)].verdict for affected in near
    }
    host.refuse(refused, number, times=0)
    site.restore()
    assert images.difference(before, site.image()) == {}


def test_what_relied_on_a_refused_write_is_not_tried(ram: Path) -> None:
    """Below a group that could not be widened nothing is asked of the kernel; it is said why."""
    world = trees.World(version="v1", groups=(group("a", "0", "0-4"), group("a/b", "0", "3")))
    host = trees.build(world)[0]
    host.refuse(trees.file(world, "a"), errno.EINVAL, times=99)
    results = one_pass(trees.site(world, host, ram))
    below = results[trees.file(world, "a/b")]

    assert (
        Verdict.SKIPPED,
        f"depends on {trees.file(world, 'a')}, which failed or is pending",
    ) == (
        below.verdict,
        below.detail,
    )
    assert [trees.file(world, "a")] == [call.path for call in host.calls]


def test_a_refused_item_waits_longer_each_time(site: agents.Site, host: KernelHost) -> None:
    """A refused write is tried again with growing pauses, and heals once the kernel takes it."""
    target = trees.file(TREE, "c")
    host.refuse(target, errno.EBUSY, times=3)
    tried = []
    with site.agent() as who:
        for _ in range(12):
            verdict = site_pass(who).get(target)
            tried.append("-" if verdict is None else verdict.verdict.value)
            site.clock.tick()

    waits = ["refused", "refused", "waiting", "refused", "waiting", "waiting", "waiting"]
    assert [*waits, "done", "-", "-", "-", "-"] == tried


def test_a_contested_file_is_written_with_pauses(site: agents.Site, host: KernelHost) -> None:
    """Another writer that keeps changing our file is not answered in every pass."""
    target = trees.file(TREE, "c")
    with site.agent() as who:
        agents.settle(who, site.clock)
        answers = []
        for _ in range(16):
            host.write(host.at(target), b"0-4")
            answers.append(site_pass(who)[target])
            site.clock.tick()

    written = [answer.verdict is Verdict.DONE for answer in answers]
    assert 5 >= sum(written) >= 3
    assert all(answer.contested for answer in answers if answer.verdict is Verdict.DONE)


def test_the_other_writer_s_value_becomes_the_original(site: agents.Site, host: KernelHost) -> None:
    """What somebody wanted after us is what comes back when we go."""
    target = host.at(trees.file(TREE, "c"))
    site.settle()
    host.write(target, b"1-4")
    site.clock.tick()
    site.settle()
    ours = host.text(target)
    site.restore()

    assert (ours, host.text(target)) == ("2-3\n", "1-4\n")


def test_protective_limits_come_back_at_once(site: agents.Site, host: KernelHost) -> None:
    """A limit that protects others does not wait, however often it is removed."""
    site.settings = {"fixed": agents.Sets(cpus=TREE.wanted.cpus, protective=True)}
    target = host.at(trees.file(TREE, "c"))
    with site.agent() as who:
        agents.settle(who, site.clock)
        for _ in range(5):
            host.write(target, b"0-4")
            assert who.tick.protection_broken(who)
            who.one_pass(slow=False)
            assert host.text(target) == "2-3\n"
            assert not who.tick.protection_broken(who)


def test_a_group_made_anew_is_written_without_pause(site: agents.Site, host: KernelHost) -> None:
    """A container that restarted under the same path is no contention: nobody touched our value."""
    with site.agent() as who:
        agents.settle(who, site.clock)
        directory = "/sys/fs/cgroup/cpuset/c"
        for pid in host.pids(directory):
            host.exit(pid)
        for _ in range(3):
            host.rmdir(host.at(directory))
            host.mkdir(host.at(directory))
            host.write(host.at(f"{directory}/cpuset.mems"), b"0")
            host.write(host.at(f"{directory}/cpuset.cpus"), b"0-4")
            outcome = site_pass(who)[f"{directory}/cpuset.cpus"]
            assert (outcome.verdict, outcome.contested) == (Verdict.DONE, False)


def test_a_group_that_vanishes_under_the_write(site: agents.Site, host: KernelHost) -> None:
    """A group that goes between look and write is a value, not an error, and is forgotten."""
    with site.agent() as who:
        made = who.tick.draft(who.book.entries)
        for pid in host.pids("/sys/fs/cgroup/cpuset/d"):
            host.exit(pid)
        host.rmdir(host.at("/sys/fs/cgroup/cpuset/d"))
        results = {
            outcome.target: outcome for outcome in who.executor.run(made.draft, made.snapshot)
        }

        assert Verdict.VANISHED is results[trees.file(TREE, "d")].verdict
        assert trees.file(TREE, "d") not in who.book.entries
        assert Verdict.DONE is results[trees.file(TREE, "c")].verdict


def test_a_full_journal_stops_changes_and_not_restoring(
    site: agents.Site, host: KernelHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for originals nothing is changed; what is on disk already can still go back."""
    before = site.image()
    site.settle()
    with site.agent() as who:

        def full(_entries: object, _patience: float) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(who.book, "intend", full)
        host.write(host.at(trees.file(TREE, "c")), b"0-4")
        site.clock.tick(100)
        host.calls.clear()
        with pytest.raises(errors.HostError, match="nothing was changed"):
            who.one_pass(slow=True)
        assert host.calls == []
        host.write(host.at(trees.file(TREE, "c")), b"2-3")
        done = who.restore()

    assert done.failed == ()
    assert images.difference(before, site.image()) == {}


def test_a_group_that_is_refused_its_first_files_is_not_left_behind(ram: Path) -> None:
    """A group of ours that could not be finished is finished later, or removed when we go."""
    site = sites.busy_demo("v1", ram)
    before = site.image()
    site.host.refuse("/sys/fs/cgroup/cpuset/koordlet-demo/ls/cpuset.mems", errno.EINVAL)
    with site.agent() as who:
        results = site_pass(who)
    site.restore()

    assert Verdict.REFUSED is results["/sys/fs/cgroup/cpuset/koordlet-demo/ls"].verdict
    assert images.difference(before, site.image()) == {}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM, 9999])
def test_every_refusal_has_a_sentence(number: int) -> None:
    """Whatever the errno, a person is told what was wanted."""
    write = action.WriteFile(target="/x", value="0-3", policy="p", reason="r")

    sentence = refusals.explain(number, write)
    assert "'0-3'" in sentence
    assert len(sentence) > 15


def test_results_are_heard_as_they_happen(site: agents.Site, host: KernelHost) -> None:
    """The reporter hears each result right after its step, not at the end of the plan."""
    heard: list[tuple[str, int]] = []
    with site.agent() as who:
        made = who.tick.draft(who.book.entries)
        who.executor.run(
            made.draft,
            made.snapshot,
            lambda outcome: heard.append((outcome.target, len(host.calls))),
        )

    assert [number for _, number in heard] == list(range(1, len(heard) + 1))
