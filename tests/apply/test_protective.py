"""The watch over protective limits: cheap, exact, and not fooled by groups that come and go."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from koordlet.apply import protective
from koordlet.host.fs import live_host, root
from koordlet.model import action
from tests.kit.kernel import KernelHost, Machine

GROUP = root.HostRoot.at("/sys/fs/cgroup/be")
FILE = root.HostRoot.at("/sys/fs/cgroup/be/cpuset.cpus")


def made(value: bytes = b"1-2") -> KernelHost:
    """A machine with one limited group."""
    host = Machine("0-3", cgroup="v2")
    host.mkdir(GROUP)
    host.write(FILE, value)
    return host


def limit(
    value: str = "1-2", *, protects: bool = True, target: str = str(FILE)
) -> action.WriteFile:
    """The limit."""
    return action.WriteFile(
        target=target, value=value, policy="p", reason="r", knob="cpuset.cpus", protective=protects
    )


class Counting(live_host.LiveHost):
    """The host's own files, and how many of them were read."""

    def __init__(self) -> None:
        self.reads = 0

    def pread(self, handle: int, size: int) -> bytes:
        self.reads += 1
        return super().pread(handle, size)

    def preads(self, handles: Sequence[int], size: int) -> list[bytes | None]:
        self.reads += len(handles)
        return super().preads(handles, size)


#: More than are read at each look.
MANY = 3 * protective.AT_ONCE


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[tuple[Counting, protective.Watch, list[Path]]]:
    """Many limits in files that the kernel tells of, found right once."""
    files = [tmp_path / f"cpuset.cpus.{number}" for number in range(MANY)]
    for file in files:
        file.write_text("1-2\n")
    host = Counting()
    watch = protective.Watch(host)
    watch.listen()
    watch.follow([limit(target=str(file)) for file in files])
    assert not watch.broken()
    host.reads = 0
    yield host, watch, files
    watch.close()


def test_what_the_kernel_tells_of_is_read_when_it_was_written(
    notified: tuple[Counting, protective.Watch, list[Path]],
) -> None:
    """Quiet looks read a few files; a write by somebody is seen at the very next look."""
    host, watch, files = notified
    quiet = watch.broken(), host.reads
    for file in files:
        with file.open("r+") as handle:
            handle.write("0-3\n")
    seen = watch.broken()

    assert (([], protective.AT_ONCE), {*map(str, files)}) == (quiet, set(seen))


def test_a_limit_of_more_than_a_page_is_right(tmp_path: Path) -> None:
    """Cut off it would be another set, and each look would call for a pass."""
    file = tmp_path / "cpuset.cpus"
    value = ",".join(str(cpu) for cpu in range(0, 8192, 2))
    file.write_text(f"{value}\n")
    watch = protective.Watch(live_host.LiveHost())
    watch.follow([limit(value, target=str(file))])
    assert watch.broken() == []

    file.write_text(f"{value},8191\n")
    assert watch.broken() == [str(file)]
    watch.close()


def test_a_plan_that_wants_the_same_is_no_reason_to_read(
    notified: tuple[Counting, protective.Watch, list[Path]],
) -> None:
    """What another plan wants otherwise is read at the next look, what it wants anew as well."""
    host, watch, files = notified
    watch.follow([limit(target=str(file)) for file in files])
    same = watch.broken(), host.reads
    watch.follow([limit("0-3" if file == files[0] else "1-2", target=str(file)) for file in files])

    assert (([], protective.AT_ONCE), [str(files[0])]) == (same, watch.broken())


def test_what_is_broken_is_told_until_it_is_right(
    notified: tuple[Counting, protective.Watch, list[Path]],
) -> None:
    """A limit that must wait for its turn is not forgotten because its event was taken."""
    _, watch, files = notified
    files[0].write_text("0-3\n")
    first, second = watch.broken(), watch.broken()
    files[0].write_text("1-2\n")

    assert ([str(files[0])], [str(files[0])], []) == (first, second, watch.broken())


def test_what_nobody_told_of_is_found_in_turns(
    notified: tuple[Counting, protective.Watch, list[Path]],
) -> None:
    """Through a mapping, as through another mount of a tree, a write is no event: turns find it."""
    _, watch, files = notified
    for file in files:
        with file.open("r+b") as handle, mmap.mmap(handle.fileno(), 0) as view:
            view[:] = b"0-3\n"
    rounds = [len(watch.broken()) for _ in range(MANY // protective.AT_ONCE)]

    assert [protective.AT_ONCE * number for number in (1, 2, 3)] == rounds


def test_a_limit_through_systemd_is_watched_too() -> None:
    """Whoever writes the file behind systemd's back is seen."""
    host = made(b"0-3")
    watch = protective.Watch(host)
    watch.follow(
        [
            action.SetUnitProperty(
                target=FILE,
                value="1-2",
                unit="be.slice",
                properties=(("AllowedCPUs", "1-2"),),
                policy="p",
                reason="r",
                knob="cpuset.cpus",
                protective=True,
            )
        ]
    )

    assert [str(FILE)] == watch.broken()


def test_a_rewritten_limit_is_seen() -> None:
    """The watch names exactly the limits that do not hold our value."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])
    before = watch.broken()
    host.write(FILE, b"0-3")

    assert ([], [str(FILE)]) == (before, watch.broken())


def test_wishes_are_followed_once_unless_something_is_missing() -> None:
    """The object itself says that it is watched; a file that cannot be opened has to come again."""
    watch, wanted = protective.Watch(made()), (limit(),)
    more = (*wanted, limit(target="/sys/fs/cgroup/gone/cpuset.cpus"))
    followed = []
    for wishes, again in ((wanted, False), (wanted, True), (more, False)):
        watch.follow(wishes, again=again)
        followed.append(watch.followed)

    assert followed == [wanted, None, None]
    assert followed[0] is wanted


def test_the_newest_value_counts() -> None:
    """A limit that changes is compared with what it shall be now."""
    watch = protective.Watch(made())
    watch.follow([limit()])
    watch.follow([limit("3")])

    assert [str(FILE)] == watch.broken()


def test_a_group_made_anew_is_watched_again() -> None:
    """After its group was removed and made again, a limit is watched from the next plan on."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])
    host.rmdir(GROUP)
    gone = watch.broken()
    host.mkdir(GROUP)
    watch.follow([limit()])

    assert ([], [str(FILE)]) == (gone, watch.broken())


def test_what_is_open_is_read_without_its_path() -> None:
    """Neither of others nor of a group that is gone: another may be there under its path."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])

    assert (watch.text(str(FILE)), watch.text(f"{FILE}.effective")) == (b"1-2\n", None)
    host.rmdir(GROUP)
    host.mkdir(GROUP)
    assert watch.text(str(FILE)) is None


def test_other_writes_are_not_watched() -> None:
    """Only limits that protect others cost a look ten times a second."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit("3", protects=False)])

    assert (watch.broken(), host.open_handles) == ([], 0)


def test_descriptors_are_given_back() -> None:
    """What is not wanted any more, or is gone, holds no descriptor."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])
    held = host.open_handles
    watch.follow([])
    dropped = host.open_handles
    watch.follow([limit()])
    host.rmdir(GROUP)
    watch.broken()
    watch.follow([limit()])
    watch.close()

    assert (held, dropped, host.open_handles) == (1, 0, 0)
