"""One cookie for those who share cores: made, copied, taken from strays, taken back."""

from __future__ import annotations

import dataclasses
import errno

import pytest

from koordlet.apply import core_cookies, kinds
from koordlet.model import action, cookies, snapshot
from koordlet.state import journal
from tests.kit import moments
from tests.kit.kernel import KernelHost, Machine

WANTED = action.ShareCore(target="/cores/others", members=(5, 6), policy="p", reason="r")


def machine(count: int) -> tuple[KernelHost, list[int]]:
    """A machine with cores of two threads, and processes."""
    host = Machine("0-3", cgroup="v2", threads=2)
    return host, [host.spawn() for _ in range(count)]


def seen(**of: int) -> snapshot.Snapshot:
    """A moment at which processes have cookies: ``p5=7``."""
    there = {int(name[1:]): cookie for name, cookie in of.items()}
    now = moments.moment(moments.machine())
    return dataclasses.replace(now, cookies=cookies.Cookies(of={"g": there}))


def entry(*values: str, target: str = WANTED.target) -> dict[str, journal.Entry]:
    """What the journal knows."""
    made = journal.Entry(kind="ShareCore", target=target, policy="p", original=None, values=values)
    return {target: made}


def completed(
    now: snapshot.Snapshot, entries: dict[str, journal.Entry], wanted: action.ShareCore = WANTED
) -> action.ShareCore:
    """The action as a plan has it."""
    done = core_cookies.Completing(now, entries).complete(wanted)
    assert isinstance(done, action.ShareCore)
    return done


def test_a_new_cookie_is_announced_by_its_process() -> None:
    """What is on disk before it is made, so that a killed agent's can be found."""
    made = completed(seen(p5=0, p6=0), {})

    assert (made.cookie, made.settled) == ("", False)
    assert kinds.value(made) == "of process 5"
    assert not kinds.satisfied(made, None)


def test_ours_is_known_by_its_number_or_its_process() -> None:
    """Both mean the same; then only who has it not is given it."""
    for values in (("7f",), ("of process 5",)):
        assert (
            (made := completed(seen(p5=0x7F, p6=0), entry(*values))).cookie,
            made.settled,
        ) == ("7f", False)
        assert completed(seen(p5=0x7F, p6=0x7F), entry(*values)).settled


def test_a_cookie_that_nobody_has_any_more_is_not_looked_for() -> None:
    """Everybody ended and was started anew: a new one is made."""
    assert completed(seen(p5=0, p6=0), entry("7f")).cookie == ""


def test_somebody_else_s_cookie_stays() -> None:
    """Who has one stays out and is counted; one of another group of ours is exchanged."""
    foreign = completed(seen(p5=9, p6=0), {})
    assert (foreign.members, foreign.foreign) == ((6,), 1)
    moved = completed(seen(p5=0x7F, p6=0), entry("7f", target="/cores/group/a"))
    assert (moved.members, moved.foreign, moved.settled) == ((5, 6), 0, False)


def test_strays_have_this_one() -> None:
    """A process that has another cookie is not this action's business."""
    wanted = dataclasses.replace(WANTED, strays=(8, 9))
    made = completed(seen(p5=7, p6=7, p8=7, p9=3), entry("7"), wanted)

    assert (made.strays, made.settled) == ((8,), False)


def test_made_copied_and_taken_from_strays() -> None:
    """The members have one, nobody else has it, and who ended meanwhile is no problem."""
    host, (first_pid, second_pid, stray) = machine(3)
    first = dataclasses.replace(WANTED, members=(first_pid, second_pid, 999))
    cookie, difference = core_cookies.carry_out(host, first)

    assert (f"{host.cookies.of[first_pid]:x}", "") == (cookie, difference)
    assert host.cookies.together(first_pid, second_pid)
    host.cookies.of[stray] = host.cookies.of[first_pid]
    late = host.spawn()
    again = dataclasses.replace(
        first, members=(first_pid, second_pid, late), strays=(stray,), cookie=cookie
    )
    assert (cookie, "") == core_cookies.carry_out(host, again)
    assert host.cookies.together(first_pid, second_pid, late)


def test_when_all_that_had_it_ended() -> None:
    """It is not made anew under the old number: the next plan sees that there is none."""
    host, (pid,) = machine(1)
    gone = dataclasses.replace(WANTED, members=(pid,), cookie="7f")
    with pytest.raises(OSError, match="cores") as refused:
        core_cookies.carry_out(host, gone)
    assert refused.value.errno == errno.ESRCH
    assert host.cookies.changes == []


def test_a_cookie_of_somebody_else_is_a_difference() -> None:
    """It is a difference: not all that was wanted could be had."""
    host, (pid,) = machine(1)
    _, difference = core_cookies.carry_out(
        host, dataclasses.replace(WANTED, members=(pid,), foreign=2)
    )
    assert difference.startswith("2 processes have a cookie of another program")


@pytest.mark.parametrize("known", [True, False])
def test_taken_back_from_everybody(*, known: bool) -> None:
    """Also from who inherited it elsewhere, and where its number was never written down."""
    host, (member, heir, stranger) = machine(3)
    cookie, _ = core_cookies.carry_out(host, dataclasses.replace(WANTED, members=(member,)))
    host.cookies.of[heir] = host.cookies.of[member]
    host.cookies.of[stranger] = 3
    value = cookie if known else f"of process {member}"
    undone = core_cookies.undo(entry(value)[WANTED.target])

    assert core_cookies.carry_out(host, undone) == ("0", "")
    assert [host.cookies.of[pid] for pid in (member, heir, stranger)] == [0, 0, 3]
    before = list(host.cookies.changes)
    core_cookies.carry_out(host, undone)
    assert before == host.cookies.changes


def test_who_is_forked_meanwhile_loses_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for until nobody has it; where that does not end, it is not said to be done."""
    host, (pid,) = machine(1)
    cookie, _ = core_cookies.carry_out(host, dataclasses.replace(WANTED, members=(pid,)))
    undone = core_cookies.undo(entry(cookie)[WANTED.target])
    copy, forks = host.cookies.copy, [2]

    def forking(source: int, pids: list[int]) -> list[int]:
        answers = copy(source, pids)
        if forks[0]:
            forks[0] -= 1
            host.cookies.of[host.spawn()] = int(cookie, 16)
        return answers

    monkeypatch.setattr(host.cookies, "copy", forking)
    assert core_cookies.carry_out(host, undone) == ("0", "")
    assert set(host.cookies.of.values()) == {0}
    host.cookies.of[pid], forks[0] = int(cookie, 16), 99
    with pytest.raises(BlockingIOError):
        core_cookies.carry_out(host, undone)


def test_where_the_agent_itself_has_a_cookie() -> None:
    """Its own thread would hand that on: none is copied from a process that has none."""
    host, (member, free) = machine(2)
    host.cookies.of[host.processes.agent.pid] = 5
    core_cookies.carry_out(host, dataclasses.replace(WANTED, members=(member,)))
    with pytest.raises(OSError, match="has no cookie"):
        host.scheduler().without()
    assert host.cookies.of.get(free, 0) == 0
