"""blkio_qos: block I/O limits of best-effort work and of single pods.

Covers: bytes and operations per second, weights, and the cost model of whole devices.
Does not cover: what a device's name means (``model.blocks``), which strategy holds (NodeSLO,
configuration, the pod's annotation).

Rules:
1. The class BE limits the places of best-effort work (``policy.best_effort.groups``), an annotation
   its pod. ``cgroupRoot`` sets the cost model of a device, on the root group; limits there would be
   limits of everything and are ignored, as those of LSR and LS are.
2. On v2 a file on a group holds for all that is inside. The v1 kernel throttles each group by
   itself (it is hierarchical with ``sane_behavior`` only, Documentation/admin-guide/cgroup-v1/
   blkio-controller.rst): there a limit is given to the groups at the bottom, in equal parts, so
   that it holds for all of them together. It does not see buffered writes there.
3. What a strategy leaves at its neutral value (0; weight 100) is not written.
4. A limit is never below ``limits.leastBps`` and ``leastIops``: whoever may not do any I/O at all
   keeps locks of the file system that everybody else waits for.
5. A device that is not there costs itself, and is said.

* Formula: as asked; on v1 in equal parts for the groups at the bottom
* Writes: `io.max`, `io.weight`, `io.cost.qos`, `io.cost.model`; on v1 `blkio.throttle.*_device`
* See: `koordlet explain write PATH`
* Off: our lines of each device go back, those of others stay
* More: best-effort.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from koordlet.history import series
from koordlet.model import cgroup, decision, knob, limits, remember, snapshot, strategies
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups as best_effort_groups
from koordlet.policy.framework import declaration, proposals

STEM = "blkio_qos"
State = decision.Stateless
#: The fields of limits to those of a strategy.
_LIMITS = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}
_MODEL = {
    "rbps": "model_read_bps",
    "rseqiops": "model_read_seq_iops",
    "rrandiops": "model_read_rand_iops",
    "wbps": "model_write_bps",
    "wseqiops": "model_write_seq_iops",
    "wrandiops": "model_write_rand_iops",
}
#: The peer's defaults of a device's targets: percentile and microseconds.
_PERCENTILE, _TARGET_USEC = 95, 3000
_NEUTRAL_WEIGHT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces them."""

    #: Of best-effort work.
    be: tuple[strategies.Block, ...] = ()
    #: Cost models of whole devices.
    root: tuple[strategies.Block, ...] = ()
    least_bps: int = 1 << 20
    least_iops: int = 10


def asked(now: snapshot.Snapshot, settings: object) -> bool:
    """Whether any strategy limits a device; otherwise devices are not read."""
    be, root = _strategies(now, cast("Settings", settings))
    return bool(be or root) or _wished(now.pods)


@remember.last
def _wished(pods: tuple[pods.Pod, ...]) -> bool:
    return any(pod.wishes.blkio_qos is not None for pod in pods)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the device lines of every limited cgroup."""
    deciding = _Deciding(now, settings)
    be, root = _strategies(now, settings)
    for place in best_effort_groups.places(now) if be else ():
        deciding.limit(place.group, be, place.who)
    for pod in now.pods:
        wish = pod.wishes.blkio_qos
        if wish is not None and wish.enable is not False and pod.group in now.groups and pod.active:
            deciding.limit(pod.group or "", wish.blocks or (), pod.key, uid=pod.uid)
    deciding.model(root)
    deciding.finish()
    return deciding.decided(state)


def _strategies(
    now: snapshot.Snapshot, settings: Settings
) -> tuple[tuple[strategies.Block, ...], tuple[strategies.Block, ...]]:
    """Strategies of best-effort work and of device models."""
    slo = now.cluster_slo
    if slo is None:
        return settings.be, settings.root
    be, root = slo.classes["BE"].blkio, slo.classes["root"].blkio
    return (be.blocks or () if be.enable else ()), (root.blocks or () if root.enable else ())


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings) -> None:
        super().__init__(STEM, now)
        self.settings = settings
        #: Path to its lines by device, with what else the file's action needs.
        self._files: dict[str, tuple[knob.Knob, str, str, dict[str, str]]] = {}
        self._absent: dict[str, None] = {}
        self._missing: dict[str, None] = {}
        self._children: Mapping[str, tuple[cgroup.Group, ...]] | None = None

    def limit(
        self, group: str, blocks: tuple[strategies.Block, ...], who: str, *, uid: str = ""
    ) -> None:
        """Limit a cgroup on each of these devices."""
        holder = self.now.layout.holder("io") or self.now.layout.holder("blkio")
        if holder is None:
            self._missing[str(self.now.layout.why_not(knob.IO_MAX))] = None
            return
        groups = [group] if holder.unified else self._bottom(group)
        for number, config in self._devices(blocks, who, uid):
            bounds = {key: getattr(config, name) or None for key, name in _LIMITS.items()}
            for each in groups:
                parts = {key: self._part(key, v, len(groups)) for key, v in bounds.items() if v}
                if parts:
                    device = limits.device(self.now.layout, each, number, parts)
                    self._add(device, each, f"{who}: limits of device {number}")
                self._weight(each, number, config, who)
            shared = f", in {len(groups)} parts" if len(groups) > 1 else ""
            shown = " ".join(f"{key}={v}" for key, v in bounds.items() if v)
            self.why[f"{who} {number}"] = f"{shown or 'no limit'}{shared}"

    def model(self, blocks: tuple[strategies.Block, ...]) -> None:
        """Set latency targets and cost models of whole devices."""
        for number, config in self._devices(blocks, "cgroupRoot", ""):
            rlat, wlat = config.read_latency, config.write_latency
            if rlat or wlat:
                rpct = config.read_latency_percent or _PERCENTILE
                wpct = config.write_latency_percent or _PERCENTILE
                line = (
                    f"{number} enable=1 ctrl=user rpct={rpct:.2f} rlat={rlat or _TARGET_USEC}"
                    f" wpct={wpct:.2f} wlat={wlat or _TARGET_USEC}"
                )
                self._cost(knob.IO_COST_QOS, line)
            if config.enable_user_model:
                values = {key: getattr(config, name) for key, name in _MODEL.items()}
                if all(values.values()):
                    shown = " ".join(f"{key}={v}" for key, v in values.items())
                    self._cost(knob.IO_COST_MODEL, f"{number} ctrl=user model=linear {shown}")
                else:
                    absent = ", ".join(_MODEL[key] for key, v in values.items() if not v)
                    self._absent[f"cgroupRoot: the user model of {number} lacks {absent}"] = None

    def _devices(
        self, blocks: tuple[strategies.Block, ...], who: str, uid: str
    ) -> Iterator[tuple[str, strategies.IoLimits]]:
        known = self.now.blocks
        for block in blocks:
            numbers = known.find(block.type, block.name, uid) if known is not None else ()
            if not numbers:
                self._absent[f"{who}: this machine has no {block.type} {block.name!r}"] = None
            for number in numbers:
                yield number, block.io_cfg

    def _part(self, key: str, value: int, among: int) -> int:
        least = self.settings.least_bps if key.endswith("bps") else self.settings.least_iops
        return max(value // among, least)

    def _weight(self, group: str, number: str, config: strategies.IoLimits, who: str) -> None:
        weight = config.io_weight_percent
        if weight is None or weight == _NEUTRAL_WEIGHT:
            return
        for row in (knob.IO_WEIGHT, knob.BLKIO_COST_WEIGHT):
            path = self.now.layout.file(row, group)
            if path is not None:
                setting = limits.Setting(row, path, f"{number} {weight}")
                self._add((setting,), group, f"{who}: weight {weight} on device {number}")
                return
        self._missing[str(self.now.layout.why_not(knob.IO_WEIGHT))] = None

    def _cost(self, row: knob.Knob, line: str) -> None:
        path = self.now.layout.file(row, "")
        known = self.now.blocks
        if path is None or known is None or row.name not in known.cost_files:
            self._missing[f"{row.name}: this kernel has no such file on the root cgroup"] = None
            return
        self._add((limits.Setting(row, path, line),), "", "cgroupRoot: the device's cost")

    def _bottom(self, group: str) -> list[str]:
        """Leaf cgroups at or below this one, where cgroup v1 throttles."""
        if self._children is None:
            self._children = self.now.children()
        bottom, todo = [], [group]
        while todo:
            here = todo.pop()
            inside = self._children.get(here, ())
            todo += [child.path for child in reversed(inside)]
            if not inside:
                bottom.append(here)
        return bottom

    def _add(self, settings: tuple[limits.Setting, ...], group: str, reason: str) -> None:
        for setting in settings:
            _, _, _, lines = self._files.setdefault(setting.path, (setting.row, group, reason, {}))
            # A pod's own wish comes after that of the class it is in, and counts.
            lines[setting.text.partition(" ")[0]] = setting.text

    def finish(self) -> None:
        """One action for each file, one line for each device; what is missing."""
        for path, (row, group, reason, lines) in self._files.items():
            self.write(path, "\n".join(lines.values()), reason, knob=row.name, group=group)
        for kind, problems in (
            ("BlockDeviceMissing", self._absent),
            ("BlkioQosUnsupported", self._missing),
        ):
            if problems:
                self.say(kind, "; ".join(problems))


POLICY = declaration.Policy(
    stem=STEM,
    summary="block I/O limits of best-effort work and of single pods",
    protects="it limits what best-effort work and single pods read and write",
    decide=decide,
    settings=Settings(),
    timeless=True,
)
