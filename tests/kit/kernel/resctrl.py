"""resctrl in memory: Intel, Intel with CDP, L2, AMD, as Linux 6.1 behaves.

Covers: mounting with options, groups and monitoring groups, ``schemata``, ``mode``, ``cpus``,
``tasks``, ``mon_data``, class and RMID exhaustion, CPU hotplug, ``info/last_cmd_status``.
Does not cover: pseudo-locking, what a limit does to speed, the values' own rules
(``resctrl_values``).

Kernel facts: ``arch/x86/kernel/cpu/resctrl/rdtgroup.c`` (6.1); recorded write by write in
``fixtures/kernel/resctrl-*.jsonl``.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.group import Processes
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.parsing import bits
from tests.kit.kernel.resctrl_tree import FILES, Group, MonData, Monitors, Taking, kill
from tests.kit.kernel.resctrl_values import Resource, Status, staged
from tests.kit.kernel.resctrl_wish import Wish, facts, resources
from tests.kit.kernel.tree import Directory, File, Node, Text, refused


class Resctrl:
    """The file system of one machine, mounted or not."""

    def __init__(
        self,
        wish: Wish,
        machine: Hardware,
        processes: Processes,
        l3: Mapping[int, CPUSet] | None = None,
    ) -> None:
        self.wish = wish
        self.machine = machine
        self.processes = processes
        self.l3 = l3 or dict(enumerate(machine.nodes.values()))
        self.status = Status()
        self.options: tuple[str, ...] | None = None
        self.resources: list[Resource] = []
        self.groups: dict[str, Group] = {}
        #: pid to the key of its group; who is not here is in the root.
        self.home: dict[int, str] = {}
        #: (group, domain, file) to the text that a test wants read.
        self.counters: dict[tuple[str, int, str], str] = {}
        self._limbo: set[int] = set()
        self._up: frozenset[tuple[str, int]] = frozenset()

    # Mounting ------------------------------------------------------------------------------------

    def mount(self, options: str) -> Group:
        """The root directory; EBUSY when mounted already, EINVAL for what cannot be."""
        if self.options is not None:
            raise refused(errno.EBUSY)
        words = tuple(word for word in options.split(",") if word)
        able = {"cdp": self.wish.cdp, "mba_MBps": self.wish.mba and not self.wish.amd}
        if not all(able.get(word, False) for word in words):
            raise refused(errno.EINVAL)
        self.options = words
        self.status.clear()
        self.resources = list(resources(self.wish, self.l3, words))
        self._up = self._domains_up()
        root = self._born("", 0)
        root.put("info", self._info())
        return root

    def unmount(self) -> None:
        """Everything is forgotten: groups, masks, tasks."""
        self.options = None
        for group in self.groups.values():
            kill(group)
        self.groups, self.home = {}, {}

    def _info(self) -> Directory:
        info = Directory({"last_cmd_status": File(lambda: str(self.status))})
        for resource in self.resources:
            files = facts(resource, self.wish, lambda: self.machine.online, self._mode_of)
            info.put(resource.name, Directory({name: File(read) for name, read in files.items()}))
        if self.wish.mon:
            texts = {"mon_features": "\n".join(FILES), "num_rmids": str(self.wish.rmids)}
            texts["max_threshold_occupancy"] = "0" if self.wish.amd else "196608"
            info.put("L3_MON", Directory({k: Text(f"{v}\n") for k, v in texts.items()}))
        return info

    def _mode_of(self, key: str) -> str:
        return self.groups[key].sharing

    # Groups --------------------------------------------------------------------------------------

    def make(self, key: str) -> None:
        """``mkdir``."""
        rmid = self._rmid() if self.wish.mon else 0
        if "mon_groups/" not in key:
            taken = sum(1 for group in self.groups.values() if not group.monitors)
            if taken >= min(resource.num_closids for resource in self.resources):
                self._limbo.add(rmid)  # taken before the class was, and given back late
                raise self.status.fail("Out of CLOSIDs", errno.ENOSPC)
        parent, _, name = key.rpartition("/")
        group = self._born(key, rmid)
        above: Directory = self.groups[""]
        if parent:
            monitors = self.groups[parent.removesuffix("mon_groups").rstrip("/")].entries[
                "mon_groups"
            ]
            assert isinstance(monitors, Directory)
            above = monitors
        above.put(name, group)

    def _rmid(self) -> int:
        used = {group.rmid for group in self.groups.values()} | self._limbo
        free = next((number for number in range(self.wish.rmids) if number not in used), None)
        if free is None:
            number = errno.EBUSY if self._limbo else errno.ENOSPC
            raise self.status.fail("Out of RMIDs", number)
        return free

    def _born(self, key: str, rmid: int) -> Group:
        group = Group(self, key, rmid)
        if not group.monitors:
            for resource in self.resources:
                resource.values[key] = self._fresh(resource)
        self.groups[key] = group
        for name, node in self._files(group):
            group.put(name, node)
        if not key:
            group.cpus = self.machine.online
        return group

    def _fresh(self, resource: Resource) -> dict[int, int]:
        """Shareable ways and those that no exclusive group has (``__init_one_rdt_domain``)."""
        taken = 0
        for key, group in self.groups.items():
            if resource.cache and group.sharing == "exclusive" and not group.monitors:
                taken |= next(iter(resource.values[key].values()), 0)
        return dict.fromkeys(resource.domains, resource.fresh & ~taken)

    def remove(self, group: Group) -> None:
        """``rmdir``: tasks and CPUs go to the group above."""
        back = group.control if group.monitors else ""
        inside = [k for k in self.groups if k == group.key or k.startswith(f"{group.key}/")]
        for key in inside:
            # A cache that still holds lines of an RMID keeps it out of use.
            self._limbo.add(self.groups.pop(key).rmid)
        for pid, key in list(self.home.items()):
            if key in inside:
                self.home[pid] = back
        if not group.monitors:
            for resource in self.resources:
                del resource.values[group.key]
            self.groups[""].cpus |= group.cpus
        parent, _, name = group.key.rpartition("/")
        above: Directory = self.groups[""]
        if parent:
            monitors = self.groups[back].entries["mon_groups"]
            assert isinstance(monitors, Directory)
            above = monitors
        above.drop(name)
        kill(group)

    def _files(self, group: Group) -> Iterator[tuple[str, Node]]:
        yield (
            "cpus",
            Taking(lambda: self._mask(group), lambda t: self._set_cpus(group, t, mask=True)),
        )
        yield "cpus_list", Taking(lambda: f"{group.cpus}\n", lambda t: self._set_cpus(group, t))
        yield "tasks", Taking(lambda: self._tasks(group), lambda text: self._move(group, text))
        if self.wish.alloc and not group.monitors:
            key = group.key
            yield (
                "schemata",
                Taking(lambda: self._lines(key, Resource.show), lambda t: self._set(group, t)),
            )
            yield "size", File(lambda: self._lines(key, Resource.size))
            yield "mode", Taking(lambda: f"{group.sharing}\n", lambda text: self._mode(group, text))
        if self.wish.mon:
            yield "mon_data", MonData(self, group)
            if not group.monitors:
                yield "mon_groups", Monitors(self, group.key)

    # Files ---------------------------------------------------------------------------------------

    def _lines(self, key: str, show: Callable[[Resource, str, CPUSet], str]) -> str:
        names = [resource.name for resource in self.resources]
        # A resource that could do CDP leaves room for its longer names.
        width = max([len(n) + (4 if n == "L3" and self.wish.cdp else 0) for n in names], default=0)
        rows = (f"{r.name:>{width}}:{show(r, key, self.machine.online)}\n" for r in self.resources)
        return "".join(rows)

    def _set(self, group: Group, text: str) -> None:
        if not text.endswith("\n"):
            raise refused(errno.EINVAL)
        self.status.clear()
        online = self.machine.online
        wanted = staged(self.resources, text[:-1], online, self.status)
        for resource, values in wanted.items():
            for domain, value in values.items():
                if resource.cache:
                    self._overlap(group, resource, domain, value)
        for resource, values in wanted.items():
            resource.values[group.key].update(values)

    def _overlap(self, group: Group, resource: Resource, domain: int, value: int) -> None:
        # Code and data are in one cache.
        same = [peer for peer in self.resources if peer.name[:2] == resource.name[:2]]
        for key, other in self.groups.items():
            clash = any(key in peer.values and peer.values[key][domain] & value for peer in same)
            if key == group.key or not clash:
                continue
            if other.sharing == "exclusive":
                raise self.status.fail("Overlaps with exclusive group")
            if group.sharing == "exclusive":
                raise self.status.fail("Overlaps with other group")

    def _mode(self, group: Group, text: str) -> None:
        if not text.endswith("\n"):
            raise refused(errno.EINVAL)
        self.status.clear()
        wanted = text[:-1]
        if wanted == "pseudo-locksetup":
            cdp = "cdp" in (self.options or ())
            raise self.status.fail("CDP enabled" if cdp else "Pseudo-locking not supported")
        if wanted not in {"shareable", "exclusive"}:
            raise self.status.fail("Unknown or unsupported mode")
        if wanted == "exclusive" and group.sharing != wanted:
            caches = [resource for resource in self.resources if resource.cache]
            if not caches:
                raise self.status.fail("Cannot be exclusive without CAT/CDP")
            if any(self._shared(cache, group.key) for cache in caches):
                raise self.status.fail("Schemata overlaps")
        group.sharing = wanted

    def _shared(self, resource: Resource, own: str) -> bool:
        mine = resource.values[own]
        others = [v for key, v in resource.values.items() if key != own]
        return any(
            mine[domain] & (resource.shareable | other[domain])
            for domain in resource.up(self.machine.online)
            for other in others
        )

    def _tasks(self, group: Group) -> str:
        inside = self._inside(group)
        return "".join(
            f"{pid}\n" for pid in sorted(self.processes.table) if self._at(pid) in inside
        )

    def _inside(self, group: Group) -> set[str]:
        """A control group lists the tasks of its monitoring groups too."""
        return {k for k, g in self.groups.items() if group.key in {k, g.control}}

    def _at(self, pid: int) -> str:
        return self.home.get(pid, "")

    def _move(self, group: Group, text: str) -> None:
        try:
            pid = int(text.strip(), 0)
        except ValueError:
            pid = -1
        if pid < 0:
            raise refused(errno.EINVAL)
        self.status.clear()
        if pid not in self.processes.table:
            raise self.status.fail(f"No task {pid}", errno.ESRCH)
        if group.monitors and self.groups[self._at(pid)].control != group.control:
            raise self.status.fail("Can't move task to different control group")
        self.home[pid] = group.key

    def fork(self, parent: int) -> int:
        """A child process: it is born in its parent's group."""
        child = self.processes.spawn("child", 0)
        for hierarchy, group in self.processes.table[parent].groups.items():
            hierarchy.attach(group, child)
        self.home[child.pid] = self._at(parent)
        return child.pid

    # CPUs ----------------------------------------------------------------------------------------

    def _mask(self, group: Group) -> str:
        return f"{sum(1 << cpu for cpu in group.cpus):0{-(-self.machine.cpu_ids // 4)}x}\n"

    def _set_cpus(self, group: Group, text: str, *, mask: bool = False) -> None:
        with self._explained("Bad CPU list/mask"):
            wanted = (
                CPUSet(int(text.replace(",", ""), 16))
                if mask
                else bits(text.strip(), self.machine.cpu_ids)
            )
        if not wanted <= self.machine.online:
            raise self.status.fail("Can only assign online CPUs")
        if group.monitors:
            if not wanted <= self.groups[group.control].cpus:
                raise self.status.fail("Can only add CPUs to mongroup that belong to parent")
        elif not group.key and group.cpus - wanted:
            raise self.status.fail("Can't drop CPUs from default group")
        for other in self.groups.values():
            if other is not group and other.monitors == group.monitors:
                other.cpus -= wanted
        if not group.monitors:
            self.groups[""].cpus |= group.cpus - wanted
        group.cpus = wanted

    @contextlib.contextmanager
    def _explained(self, why: str) -> Iterator[None]:
        try:
            yield
        except ValueError:
            raise self.status.fail(why) from None
        except OSError as error:
            raise self.status.fail(why, error.errno or errno.EINVAL) from None

    def hotplug(self) -> None:
        """A domain without CPUs disappears; one that comes back starts full."""
        if self.options is None:
            return
        up = self._domains_up()
        for resource in self.resources:
            for values in resource.values.values():
                for domain in resource.up(self.machine.online):
                    if (resource.name, domain) not in self._up:
                        values[domain] = resource.fresh
        for group in self.groups.values():
            group.cpus &= self.machine.online
        assigned = [g.cpus for g in self.groups.values() if g.key and not g.monitors]
        root = self.groups[""]
        root.cpus = self.machine.online
        for cpus in assigned:
            root.cpus -= cpus
        self._up = up

    def _domains_up(self) -> frozenset[tuple[str, int]]:
        online = self.machine.online
        return frozenset(
            (resource.name, domain) for resource in self.resources for domain in resource.up(online)
        )
