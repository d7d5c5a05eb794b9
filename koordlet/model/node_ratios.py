"""Speed of this node's CPUs from a table of CPU models, and amplification of the node. Pure.

Covers: the row of a model, the normalization ratio, the amplification of each resource, both as the
annotations that schedulers read.
Does not cover: the table (``config.node_ratio_sections``), writing the Node
(``report.objects.node_status``), quotas by the ratio (``policy.cpu.cpu_normalization``).

Rules:
1. The ratio is that of the CPU's model as the machine runs: with SMT or turbo, with both or with
   neither. What the machine does not say counts as off, and the reason says so.
2. A model that is not in the table has the ratio for others; without one there is no ratio.
3. The label ``cpu-normalization-enabled: "false"`` of the Node makes the ratio 1.00.
4. Where amplification is configured, that of CPU is multiplied by the ratio; without, none is
   reported: it takes a scheduler and a webhook that know it. Both have two decimals.
5. A ratio that somebody else has written counts before the table's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field

from koordlet.model import resources, topology
from koordlet.model.record import dataclass

NORMALIZATION = "node.koordinator.sh/cpu-normalization-ratio"
AMPLIFICATION = "node.koordinator.sh/resource-amplification-ratio"
ANNOTATIONS = (NORMALIZATION, AMPLIFICATION)
ENABLED = "node.koordinator.sh/cpu-normalization-enabled"
LEAST, MOST = 1.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRatios:
    """Ratios of one CPU model; ``None``: not measured."""

    base: float
    hyper_thread: float | None = None
    turbo: float | None = None
    hyper_thread_turbo: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioTable:
    """The operator's table."""

    models: Mapping[str, ModelRatios] = field(default_factory=dict)
    #: Ratio of a model that is not in it.
    other: float | None = None
    #: Resource to how many times of it the node offers.
    amplification: Mapping[str, float] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """True where nothing is computed."""
        return not self.models and self.other is None and not self.amplification


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRatios:
    """Ratios of this node, and why."""

    normalization: float | None = None
    amplification: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    def annotations(self, standing: Mapping[str, str]) -> dict[str, str]:
        """Annotations of the Node; ``standing`` are those that others have written (rule 5)."""
        made: dict[str, str] = {}
        speed = None if self.normalization is None else f"{self.normalization:.2f}"
        if speed is not None:
            made[NORMALIZATION] = speed
        if self.amplification:
            faster = parse(standing.get(NORMALIZATION, speed or "")) or 1.0
            cpu = self.amplification.get(resources.CPU, 1.0) * faster
            amplified = {**self.amplification, **({resources.CPU: cpu} if cpu > 1.0 else {})}
            rounded = {name: round(ratio, 2) for name, ratio in sorted(amplified.items())}
            made[AMPLIFICATION] = json.dumps(rounded, separators=(",", ":"))
        return made


def parse(text: str) -> float | None:
    """A normalization ratio; ``None`` where it is none from 1 to 5."""
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    return speed if LEAST <= speed <= MOST else None


def alike(text: str, other: str) -> bool:
    """Whether two annotations say the same, however they are written: ``1.2`` is ``1.20``."""
    try:
        return text == other or json.loads(text) == json.loads(other)
    except (ValueError, RecursionError):
        return False


def computed(
    machine: topology.Topology, labels: Mapping[str, str], table: RatioTable
) -> NodeRatios | None:
    """Ratios of this machine; ``None`` where the table is empty."""
    if table.empty:
        return None
    ratio, reason = _normalization(machine, labels, table)
    return NodeRatios(normalization=ratio, amplification=table.amplification, reason=reason)


def _normalization(
    machine: topology.Topology, labels: Mapping[str, str], table: RatioTable
) -> tuple[float | None, str]:
    if not table.models and table.other is None:
        return None, "no table of CPU models"
    if labels.get(ENABLED) == "false":
        return 1.0, f"the label {ENABLED} switches it off"
    name = machine.model_name or ""
    model = table.models.get(name)
    if model is None:
        other = "no ratio" if table.other is None else f"the ratio of other models, {table.other:g}"
        return table.other, f"{name or 'unknown model'} is not in the table: {other}"
    threads, turbo = machine.smt == "on", machine.turbo is True
    row, ratio = {
        (False, False): ("base", model.base),
        (True, False): ("hyperThread", model.hyper_thread),
        (False, True): ("turbo", model.turbo),
        (True, True): ("hyperThreadTurbo", model.hyper_thread_turbo),
    }[threads, turbo]
    states = f"SMT {_state(machine.smt)}, turbo {_state(machine.turbo)}"
    value = "no ratio" if ratio is None else f"{ratio:g}"
    return ratio, f"{name}, {states}: {row}, {value}"


def _state(known: object) -> str:
    if known is None:
        return "unknown, taken as off"
    return "on" if known in ("on", True) else "off"
