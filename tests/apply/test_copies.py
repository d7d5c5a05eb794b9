"""What was born with a value of ours: found, with what it would have without us."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.apply import copies
from koordlet.model import action
from koordlet.state import journal
from tests.kit import agents, colocation, moments, sites

TOP = "/sys/fs/cgroup/cpuset"


def born(site: agents.Site, path: str, cpus: str) -> None:
    """A group with a copy of the set above it, as a runtime makes one."""
    site.host.mkdir(site.host.at(f"{TOP}/{path}"))
    for name, text in (("cpus", cpus), ("mems", "0")):
        site.host.write(site.host.at(f"{TOP}/{path}/cpuset.{name}"), f"{text}\n".encode())


def cpus(site: agents.Site, path: str) -> str:
    """A group's set."""
    return site.host.text(site.host.at(f"{TOP}/{path}/cpuset.cpus")).strip()


@pytest.mark.parametrize("again", [False, True])
def test_what_was_born_in_a_narrowed_group(ram: Path, *, again: bool) -> None:
    """It follows the set above, and has the original of that after a restore; a wish stays one."""
    site = sites.workloads("v1", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        ours = cpus(site, "web")
        assert ours != "0-4"
        born(site, "web/copy", ours)
        born(site, "web/copy/inner", ours)
        born(site, "web/wish", ours[0])
        agents.settle(who, site.clock)
        if not again:
            assert not who.restore().failed
    if again:
        assert not site.restore().failed

    assert ["0-4", "0-4", ours[0]] == [
        cpus(site, f"web/{n}") for n in ("copy", "copy/inner", "wish")
    ]


def test_a_copy_follows_the_set_above(ram: Path) -> None:
    """When the workload gets more, what was born inside it gets more as well."""
    site = sites.workloads("v1", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        born(site, "web/copy", cpus(site, "web"))
        agents.settle(who, site.clock)
        wider = agents.effective(site.config.replace("reserved_cpus:", "reserved_cpus: #"))
        who.tick.configure(wider)
        agents.settle(who, site.clock)

        assert cpus(site, "web") == cpus(site, "web/copy")


def test_an_original_that_could_not_be_written_down_is_asked_for_again(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk in the one pass that saw a group come costs no original in the next."""
    site = sites.workloads("v1", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        ours = cpus(site, "web")
        born(site, "web/copy", ours)

        def full(*_args: object, **_more: object) -> bool:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as once:
            once.setattr(copies, "adopt", full)
            who.one_pass(slow=True)
        site.clock.tick()
        who.one_pass(slow=False)
        known = f"{TOP}/web/copy/cpuset.cpus" in who.book.entries

    assert known


@pytest.mark.parametrize(
    ("has", "known", "adopted"), [(1000, True, True), (0, True, False), (1000, False, False)]
)
def test_a_forked_process_has_its_parent_s(*, has: int, known: bool, adopted: bool) -> None:
    """Where another process of its group has ours, it would have what that one had; else not."""
    made = [
        action.WriteFile(
            target=f"/proc/{pid}/oom_score_adj", value="1000", policy="p", reason="r", group="g"
        )
        for pid in (7, 8)
    ]
    entry = journal.Entry(
        kind="WriteFile",
        target=made[0].target,
        policy="p",
        original="-3",
        values=("1000",),
        group="g" if known else "elsewhere",
    )
    now = replace(colocation.moment(moments.machine(1, 2), ()), oom_scores={"g": {7: 1000, 8: has}})

    adoptions = list(copies.find(made, now, {entry.target: entry}))
    assert adoptions == ([(made[1], "-3")] if adopted else [])
