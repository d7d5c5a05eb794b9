"""Reads resctrl: where it is mounted and how, what the hardware has, which groups there are.

Covers: ``info/``, every group's ``schemata`` and ``mode``, why there is nothing to read.
Does not cover: counters (``monitor``), whose threads are where (``tasks``), what a limit should be
(``policy.resctrl.resctrl``).

Rules:
1. Which domains there are is asked of the root's ``schemata`` at every look: ids have gaps, and a
   cache whose CPUs are all offline disappears.
2. What other programs mounted is respected: its options are read, never changed.
3. A group that vanishes between two reads was never there.

Cost: with resctrl mounted and four groups, some 20 small reads at each look; without, none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.host.fs import root
from koordlet.model import absence, resctrl, schemata

FEATURE = "resctrl"
#: Files of a group's directory: what else is in the root's is looked at.
_FILES = frozenset({"cpus", "cpus_list", "mode", "schemata", "size", "tasks"})
#: Words of ``/proc/cpuinfo`` that promise something to control.
_FLAGS = frozenset({"cat_l3", "cat_l2", "mba", "cdp_l3", "cdp_l2", "smba"})
_AMD = frozenset({"AuthenticAMD", "HygonGenuine", "amd"})
#: A percentage is not larger: what is, is an amount.
_MOST_PERCENT = 100


class ResctrlTreeReader:
    """Reads one host. What only a mount can change is kept until ``refresh``."""

    def __init__(self, host: root.HostRoot) -> None:
        self.host = host
        self.unsupported: tuple[absence.Unsupported, ...] = ()
        self._mount: tuple[str, tuple[str, ...]] | None = None
        self._info: dict[str, dict[str, str]] = {}
        #: As they were read last: what gets no answer is what it was.
        self._last: Mapping[str, resctrl.Group] = {}
        self._vendor = ""
        self._writable = False

    def refresh(self, vendor: str | None, flags: Iterable[str]) -> None:
        """The slow lane: the mount may have come, gone or changed its options."""
        self._vendor = vendor or ""
        try:
            mount = mounted(self.host.text(self.host.proc("self", "mountinfo")))
        except OSError as error:
            if self.host.silence.met(error, known=bool(self._vendor or self._mount)):
                return
            mount = None
        if mount != self._mount:
            self._info, self._last = {}, {}
        self._mount = mount
        if mount is None:
            self.unsupported = (absence.Unsupported(FEATURE, self._why_not(flags)),)
            return
        # Read anew each time: unmounted and mounted again with other options looks the same here.
        self._info = self._read_info(mount[0])
        self._writable = self.host.access(self.host.at(mount[0]), 2)
        self.unsupported = tuple(self._gaps(flags))

    def read(self) -> resctrl.Resctrl | None:
        """The groups as they are now; ``None`` where nothing is mounted (any more)."""
        if self._mount is None:
            return None
        mount, options = self._mount
        self._last = groups = self._groups(mount)
        if "" not in groups:
            self._mount = None
            why = f"{mount} was unmounted; its control groups and limits are lost"
            self.unsupported = (absence.Unsupported(FEATURE, why),)
            return None
        parsed = [schemata.parse(group.schemata) for group in groups.values()]
        return resctrl.Resctrl(
            mount=mount,
            options=options,
            hardware=self._hardware(parsed, options),
            groups=groups,
            vendor=self._vendor,
            writable=self._writable,
        )

    # Groups --------------------------------------------------------------------------------------

    def _groups(self, mount: str) -> Mapping[str, resctrl.Group]:
        groups = {}
        for name in ("", *self._names(mount)):
            group = self._group(mount, name)
            if group is not None:
                groups[name] = group
        return groups

    def _names(self, mount: str) -> list[str]:
        try:
            names = self.host.list(self.host.at(mount))
        except OSError as error:
            if self.host.silence.met(error, known="" in self._last):
                return [name for name in self._last if name]
            return []
        return [n for n in names if n not in _FILES and n not in resctrl.RESERVED_NAMES]

    def _group(self, mount: str, name: str) -> resctrl.Group | None:
        place = self.host.below(self.host.at(mount), name)
        try:
            here = self.host.stat(place)
            # Without anything to allocate, groups only count: they have ``tasks`` and no schemata.
            self.host.stat(self.host.below(place, "tasks"))
        except OSError as error:
            last = self._last.get(name)
            return last if self.host.silence.met(error, known=last is not None) else None
        if here.kind is not root.FileKind.DIRECTORY:
            return None
        last = self._last.get(name)
        if last is not None and last.inode != here.inode:
            last = None
        was = resctrl.Group(name=name, inode=here.inode) if last is None else last
        try:
            monitors = tuple(self.host.list(self.host.below(place, "mon_groups")))
        except OSError as error:
            known = last is not None
            monitors = was.monitors if self.host.silence.met(error, known=known) else ()
        return resctrl.Group(
            name=name,
            inode=here.inode,
            schemata=self._text(self.host.below(place, "schemata"), was.schemata) or "",
            mode=(self._text(self.host.below(place, "mode"), was.mode) or "shareable").strip(),
            monitors=monitors,
        )

    # Hardware ------------------------------------------------------------------------------------

    def _read_info(self, mount: str) -> dict[str, dict[str, str]]:
        by_resource: dict[str, dict[str, str]] = {}
        info = self.host.below(self.host.at(mount), "info")
        for name in self._list(info, self._info):
            place = self.host.below(info, name)
            last = self._info.get(name, {})
            files = {
                file: self._text(self.host.below(place, file), last.get(file))
                for file in self._list(place, last)
            }
            if files:
                by_resource[name] = {
                    file: text.strip() for file, text in files.items() if text is not None
                }
        return by_resource

    def _hardware(
        self, groups: list[schemata.Schemata], options: tuple[str, ...]
    ) -> resctrl.Hardware:
        caches, bandwidths = [], []
        for name, domains in groups[0].values.items():
            info = self._info.get(name)
            if info is None:
                continue
            if schemata.is_mask(name):
                caches.append(self._cache(name, info, tuple(domains)))
            else:
                bandwidths.append(self._bandwidth(name, info, groups, options))
        counted = self._info.get("L3_MON")
        monitoring = None
        if counted is not None:
            # Where packages are counted, too (Linux 7.0), a group needs an id of theirs as well.
            ids = [
                _number(folder, "num_rmids", 0)
                for folder in (counted, self._info.get("PERF_PKG_MON"))
                if folder is not None
            ]
            monitoring = resctrl.Monitoring(
                features=tuple(counted.get("mon_features", "").split()),
                num_rmids=min(filter(None, ids), default=0),
            )
        return resctrl.Hardware(
            caches=tuple(caches), bandwidths=tuple(bandwidths), monitoring=monitoring
        )

    def _cache(self, name: str, info: Mapping[str, str], domains: tuple[int, ...]) -> resctrl.Cache:
        # From 6.6 on a file says whether holes are allowed; before, they are on AMD alone.
        sparse = info.get("sparse_masks")
        # Devices that fill this cache by themselves (6.19) have the last class of service.
        by_devices = info.get("io_alloc") == "enabled"
        return resctrl.Cache(
            name=name,
            mask=_number(info, "cbm_mask", 0, 16),
            min_bits=_number(info, "min_cbm_bits", 1),
            sparse=sparse == "1" if sparse is not None else self._vendor in _AMD,
            shareable=_number(info, "shareable_bits", 0, 16),
            num_closids=_number(info, "num_closids", 1) - by_devices,
            domains=domains,
        )

    def _bandwidth(
        self,
        name: str,
        info: Mapping[str, str],
        groups: list[schemata.Schemata],
        options: tuple[str, ...],
    ) -> resctrl.Bandwidth:
        most: dict[int, int] = {}
        for group in groups:
            for domain, value in group.values.get(name, {}).items():
                most[domain] = max(value, most.get(domain, 0))
        return resctrl.Bandwidth(
            name=name,
            unit=self._unit(name, most.values(), options),
            gran=max(1, _number(info, "bandwidth_gran", 1)),
            minimum=_number(info, "min_bandwidth", 0),
            num_closids=_number(info, "num_closids", 1),
            domains=tuple(groups[0].values[name]),
            unlimited=most,
        )

    def _unit(self, name: str, values: Iterable[int], options: tuple[str, ...]) -> resctrl.Unit:
        """No file says it: mount options, the vendor, and what only an amount can be do."""
        if "mba_MBps" in options and name == "MB":
            return resctrl.Unit.MBPS
        if self._vendor in _AMD or name == "SMBA" or max(values, default=0) > _MOST_PERCENT:
            return resctrl.Unit.EIGHTHS
        return resctrl.Unit.PERCENT

    # Why not -------------------------------------------------------------------------------------

    def _why_not(self, flags: Iterable[str]) -> str:
        kernel = self._text(self.host.proc("filesystems")) or ""
        if "resctrl" in kernel.split():
            return "not mounted; policies.resctrl.mount lets koordlet mount it"
        promised = sorted(_FLAGS.intersection(flags))
        if promised:
            return f"the processor has {' '.join(promised)}, but this kernel has no resctrl"
        return "this processor or kernel cannot control cache or memory bandwidth"

    def _gaps(self, flags: Iterable[str]) -> Iterable[absence.Unsupported]:
        """Missing features that the processor promises: some need a boot option."""
        if "cat_l3" in flags and not {"L3", "L3CODE"} & self._info.keys():
            why = "the processor has cat_l3, but the kernel offers no L3; boot with rdt=l3cat"
            yield absence.Unsupported(f"{FEATURE}.L3", why)
        if "L3_MON" not in self._info:
            yield absence.Unsupported(f"{FEATURE}.monitoring", "no monitoring")

    def _text(self, path: root.HostPath, last: str | None = None) -> str | None:
        return self.host.silence.held(lambda: self.host.text(path), last, None)

    def _list(self, path: root.HostPath, last: Iterable[str]) -> list[str]:
        return self.host.silence.held(lambda: self.host.list(path), list(last), [])


def mounted(mountinfo: str) -> tuple[str, tuple[str, ...]] | None:
    """Mount point and options; the kernel has one resctrl, possibly mounted twice."""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(), right.split()
        if kind[:1] == ["resctrl"] and len(words) > 4:
            plain = {"rw", "ro", "relatime", "noatime", "nosuid", "nodev", "noexec"}
            given = [word for word in ",".join(kind[2:]).split(",") if word not in plain]
            return words[4], tuple(word for word in given if word)
    return None


def _number(info: Mapping[str, str], name: str, otherwise: int, base: int = 10) -> int:
    try:
        return int(info.get(name, ""), base)
    except ValueError:
        return otherwise
