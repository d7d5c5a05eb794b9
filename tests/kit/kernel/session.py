"""Runs scripts on a machine, real or not, below a test group of its own, and cleans up.

Covers: finding the hierarchies, carrying out operations, undoing everything afterwards.
Does not cover: the language (``script``), processes (``actors``).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping

from koordlet.host.fs.root import FileKind, HostPath, HostRoot
from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import script
from tests.kit.kernel.actors import Actors

#: The name under which the unified hierarchy goes, beside v1's controllers.
UNIFIED = ""
#: … and the one of resource control, whose groups have no test group above them.
RESCTRL = "resctrl"
_RESCTRL_PLACE = "/sys/fs/resctrl"
#: What v2 scripts expect to find in the test group, if the kernel has it.
_WANTED = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")


def mounts(host: HostRoot, below: str) -> dict[str, HostPath]:
    """Controller to mount point; the unified hierarchy has the empty name."""
    places: dict[str, HostPath] = {}
    for line in host.text(host.proc("self", "mountinfo")).splitlines():
        left, _, right = line.partition(" - ")
        place, (kind, _, options) = left.split()[4], right.split(" ", 2)
        if not (place + "/").startswith(below.rstrip("/") + "/"):
            continue
        if kind == "cgroup2":
            places[UNIFIED] = host.at(place)
        if kind == "cgroup":
            for name in options.split(","):
                places[name] = host.at(place)
    return places


def facts_of(
    host: HostRoot, below: str = "/", *, alone: bool = False, resctrl: str = ""
) -> script.Facts:
    """What this machine is, as far as scripts need to know.

    ``alone`` says that nothing else lives here: scripts may switch CPUs off, take them away from
    everybody, and change what the root of the unified hierarchy passes down.
    """
    places = mounts(host, below)
    needed = {"cpu", "cpuset", "memory", "pids"}
    # A mount that this process may not change is as good as none.
    places = {name: place for name, place in places.items() if host.access(place, os.W_OK)}
    kinds = ["v1"] if needed <= places.keys() else []
    if UNIFIED in places:
        given = "cgroup.controllers" if alone else "cgroup.subtree_control"
        usable = host.text(host.below(places[UNIFIED], given)).split()
        kinds += ["v2"] if needed <= set(usable) else []
    node = host.sys("devices", "system", "node")
    numbers = CPUSet.parse(host.text(host.below(node, "online")))
    return script.Facts(
        kernel=_version(host.text(host.proc("sys", "kernel", "osrelease"))),
        cgroup="+".join(kinds),
        cpus=host.text(host.sys("devices", "system", "cpu", "possible")).strip(),
        nodes={
            str(number): host.text(host.below(node, f"node{number}", "cpulist")).strip()
            for number in numbers
        },
        memory_nodes=host.text(host.below(node, "has_memory")).strip(),
        alone=alone,
        joined=places.get("cpu", "") == places.get("cpuacct", ""),
        resctrl=resctrl,
        l3=_l3(host) if resctrl else {},
        loop=host.access(host.at("/dev/loop-control"), os.W_OK),
    )


def _l3(host: HostRoot) -> dict[str, str]:
    """Each L3 cache and its CPUs, as sysfs tells them."""
    caches = {}
    place = host.sys("devices", "system", "cpu")
    for name in host.list(place):
        cache = host.below(place, name, "cache", "index3")
        if host.exists(host.below(cache, "id")):
            number = host.text(host.below(cache, "id")).strip()
            caches[number] = host.text(host.below(cache, "shared_cpu_list")).strip()
    return caches


def _version(release: str) -> str:
    """The numbers at the front; what a builder appends says nothing about manners."""
    match = re.match(r"\d+(\.\d+)+", release)
    return match[0] if match else "0.0"


def record(
    program: script.Script,
    actors: Actors,
    below: str = "/",
    *,
    alone: bool = False,
    facts: script.Facts | None = None,
) -> script.Recording:
    """Runs a script from start to end."""
    machine = facts or facts_of(actors.host, below, alone=alone)
    with session(actors, below) as running:
        answers = tuple(running.do(operation) for operation in program.operations)
    return script.Recording(program.name, machine, answers)


@contextlib.contextmanager
def session(actors: Actors, below: str = "/") -> Iterator[Session]:
    """A session with an empty test group in every hierarchy that a script may name."""
    running = Session(actors, mounts(actors.host, below))
    try:
        running.prepare()
        yield running
    finally:
        running.clean()


class Session:
    """One test group per hierarchy, and the processes, handles and CPUs that a script touches."""

    def __init__(self, actors: Actors, places: Mapping[str, HostPath]) -> None:
        self.actors = actors
        self.host = actors.host
        self._places = places
        self._name = f"koordlet-test-{os.getpid()}-script"
        self._pids: dict[str, int] = {}
        self._disks: dict[str, str] = {}
        self._handles: dict[str, int] = {}
        self._dark: set[str] = set()
        self._lent: list[str] = []
        self._mounted = False

    # Setting up and taking down -------------------------------------------------------------------

    def prepare(self) -> None:
        """Makes the test groups; v2 needs the controllers passed down from the root."""
        if UNIFIED in self._places:
            place = self._places[UNIFIED]
            control = self.host.below(place, "cgroup.subtree_control")
            offered = self.host.text(self.host.below(place, "cgroup.controllers")).split()
            passed = self.host.text(control).split()
            self._lent = [name for name in _WANTED if name in offered and name not in passed]
            for name in self._lent:
                self.host.write(control, f"+{name}".encode())
        for place in self._distinct():
            self.host.mkdir(self.host.below(place, self._name))

    def _distinct(self) -> list[HostPath]:
        """Each hierarchy once, and only those that have controllers we know."""
        known = {"blkio", "cpu", "cpuacct", "cpuset", "memory", "pids", UNIFIED}
        return sorted({place for name, place in self._places.items() if name in known})

    def clean(self) -> None:
        """Leaves the machine as it was found, whatever happened."""
        with contextlib.ExitStack() as last_first:
            for name in self._lent:
                control = self.host.below(self._places[UNIFIED], "cgroup.subtree_control")
                last_first.callback(self.host.write, control, f"-{name}".encode())
            for place in self._distinct():
                last_first.callback(self._remove, self.host.below(place, self._name))
            for cpu in self._dark:
                last_first.callback(self.host.write, self._cpu(cpu), b"1")
            if self._mounted:
                last_first.callback(self._umount)
            for number in self._disks.values():
                last_first.callback(self.actors.unplug, number)
            for pid in self._pids.values():
                last_first.callback(self.actors.end, pid)
            for handle in self._handles.values():
                last_first.callback(self.host.close, handle)

    def _remove(self, group: HostPath) -> None:
        if not self.host.exists(group):
            return
        for name in self.host.list(group):
            child = self.host.below(group, name)
            if self.host.stat(child, follow=False).kind is FileKind.DIRECTORY:
                self._remove(child)
        # A process that was just reaped may still be counted for a moment.
        self.actors.until(lambda: self._gone(group))

    def _gone(self, group: HostPath) -> bool:
        try:
            self.host.rmdir(group)
        except OSError as error:
            return error.errno == errno.ENOENT
        return True

    # Names ----------------------------------------------------------------------------------------

    def _path(self, word: str) -> HostPath:
        name, colon, rest = word.partition(":")
        if name == RESCTRL:
            return self.host.below(self.host.at(_RESCTRL_PLACE), rest)
        place = self._places[name if colon else UNIFIED]
        rest = rest if colon else name
        if rest == "^" or rest.startswith("^/"):
            return self.host.below(place, rest[1:])
        return self.host.below(place, self._name, rest.removeprefix("."))

    def _cpu(self, cpu: str) -> HostPath:
        return self.host.sys("devices", "system", "cpu", f"cpu{cpu}", "online")

    def _numbers(self, text: str) -> str:
        known = {**self._pids, **self._disks}
        for name, number in sorted(known.items(), key=lambda item: -len(item[0])):
            text = text.replace(f"${name}", str(number))
        return text

    def _names(self, file: str, text: str) -> str:
        text = text.removesuffix("\n")
        if file.rpartition("/")[2].startswith(("io.", "blkio.")):
            names = {number: f"${name}" for name, number in self._disks.items()}
            return re.sub(
                r"^\d+:\d+", lambda match: names.get(match[0], match[0]), text, flags=re.MULTILINE
            )
        if not file.endswith(("procs", "tasks", "threads")):
            return text
        names = {str(pid): f"${name}" for name, pid in self._pids.items()}
        return "\n".join(names.get(line, line) for line in text.split("\n"))

    # Operations -----------------------------------------------------------------------------------

    def do(self, operation: script.Operation) -> script.Answer:
        """Carries one operation out and reads what it asks for."""
        act: Callable[..., str | None] = getattr(self, f"_{operation.verb}")
        answer = _answer(lambda: act(*operation.words) or "ok")
        reads = tuple(_answer(functools.partial(self._read, path)) for path in operation.reads)
        return script.Answer(operation.text, answer, reads)

    def _mkdir(self, group: str) -> None:
        self.host.mkdir(self._path(group))

    def _rmdir(self, group: str) -> None:
        self.host.rmdir(self._path(group))

    def _write(self, file: str, text: str) -> None:
        self._raw(file, text + "\n")

    def _raw(self, file: str, text: str) -> None:
        self.host.write(self._path(file), self._numbers(text).encode())

    def _read(self, file: str) -> str:
        return "= " + self._names(file, self.host.text(self._path(file)))

    def _keys(self, file: str) -> str:
        rows = self.host.text(self._path(file)).splitlines()
        return "= " + " ".join(row.split()[0] for row in rows if row.strip())

    def _list(self, group: str) -> str:
        return "= " + " ".join(self.host.list(self._path(group)))

    def _spawn(self, name: str, group: str | None = None) -> None:
        self._pids[name] = self.actors.spawn()
        if group is not None:
            self._write(f"{group}/cgroup.procs", f"${name}")

    def _hog(self, name: str, size: str, group: str) -> None:
        self._pids[name] = self.actors.hog()
        self._write(f"{group}/cgroup.procs", f"${name}")
        self.actors.hold(self._pids[name], int(size))

    def _disk(self, name: str) -> None:
        self._disks[name] = self.actors.plug()

    def _exit(self, name: str) -> None:
        self.actors.end(self._pids.pop(name))

    def _wait(self, name: str) -> str:
        return self.actors.outcome(self._pids[name])

    def _pin(self, name: str, cpus: str) -> None:
        self.actors.pin(self._pids[name], CPUSet.parse(cpus))

    def _affinity(self, name: str) -> str:
        return f"= {self.actors.affinity(self._pids[name])}"

    def _online(self, cpu: str) -> None:
        self._switch(cpu, b"1")
        self._dark.discard(cpu)

    def _offline(self, cpu: str) -> None:
        self._dark.add(cpu)
        self._switch(cpu, b"0")

    def _switch(self, cpu: str, value: bytes) -> None:
        """The cpuset code follows in a work item; every write to a mask waits for that first."""
        self.host.write(self._cpu(cpu), value)
        place = self._places.get("cpuset", self._places.get(UNIFIED))
        assert place is not None
        with contextlib.suppress(OSError):
            self.host.write(self.host.below(place, self._name, "cpuset.cpus"), b"nonsense")

    def _open(self, name: str, file: str) -> None:
        self._handles[name] = self.host.open(self._path(file))

    def _pread(self, name: str) -> str:
        return "= " + self.host.pread(self._handles[name], 4096).decode().removesuffix("\n")

    def _close(self, name: str) -> None:
        self.host.close(self._handles.pop(name))

    def _mount(self, options: str = "") -> None:
        self.host.mount("resctrl", self.host.at(_RESCTRL_PLACE), "resctrl", options)
        self._mounted = True

    def _umount(self) -> None:
        self.host.unmount(self.host.at(_RESCTRL_PLACE))
        self._mounted = False

    def _until(self, file: str, text: str) -> str:
        path, wanted = self._path(file), self._numbers(text)
        return "ok" if self.actors.until(lambda: wanted in self.host.text(path)) else "never"


def _answer(act: Callable[[], str]) -> str:
    try:
        return act()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
