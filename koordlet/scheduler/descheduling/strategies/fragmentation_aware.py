"""FragmentationAware: evens out how much of each resource of a node is requested.

Covers: the imbalance of nodes, the one pod of a node whose leaving helps most. Does not cover: load
(``low_node_load``).

Rules:
1. The imbalance of a node is the population standard deviation of requested over allocatable, of
   the resources that it has.
2. Of a node above ``imbalanceThreshold`` the pod goes that lowers it most, by more than
   ``minImprovementThreshold``.
3. The imbalance of its target must not grow by more than that (the peer moves it all the same).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Rows
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import requests

_Floats = npt.NDArray[np.float64]
_USUAL = (requests.CPU, requests.MEMORY)


class FragmentationAware:
    """The strategy."""

    name = "FragmentationAware"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields)
        self._names = fields.texts("resources", _USUAL)
        self._above = float(fields.read("imbalanceThreshold", _share, 0.15))
        self._gain = float(fields.read("minImprovementThreshold", _share, 0.02))
        if len(self._names) < 2:
            fields.fail("resources", "one resource is always balanced", "name cpu and memory")
        if len(set(self._names)) < len(self._names):
            fields.fail("resources", "a resource is listed twice")
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """One pod of each node that is out of balance, the worst node first."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        columns = scene.state.columns
        rows = self._settings.rows(scene)
        imbalances = self._imbalances(columns, np.array(rows, np.intp), {})
        order = np.argsort(-imbalances, kind="stable").tolist()
        worst = [place for place in order if imbalances[place] > self._above]
        scene.relieve(len(worst))
        if not worst:
            scene.note(f"no node has an imbalance above {self._above:g}")
        for place in worst:
            chosen = self._chosen(scene, rows[place])
            if chosen is None:
                continue
            resident, target, before, after = chosen
            reason = (
                f"fragmentation reduction: stdBefore={before:.4f} stdAfter={after:.4f}"
                f" gain={before - after:.4f}"
            )
            yield rounds.Intent(resident, reason, target, shadow=self._settings.dry_run)

    def _chosen(self, scene: rounds.Scene, row: int) -> tuple[Resident, int, float, float] | None:
        """The pod whose leaving helps most and harms no target as much, and where it goes."""
        columns = scene.state.columns
        here = np.array([row], np.intp)
        before = float(self._imbalances(columns, here, {})[0])
        gains = []
        for resident in scene.evictable(row, self._settings.wants):
            asked = resident.pod.pod_class.requests.real
            leaving = {name: -asked.get(name, 0) for name in self._names}
            after = float(self._imbalances(columns, here, leaving)[0])
            if before - after > self._gain:
                gains.append((after, resident.pod.key, resident))
        for after, _, resident in sorted(gains, key=lambda each: each[:2]):
            if not self._settings.node_fit:
                return resident, -1, before, after
            target = self._target(scene, resident, before - after)
            if target >= 0:
                return resident, target, before, after
        return None

    def _target(self, scene: rounds.Scene, resident: Resident, gain: float) -> int:
        """The node that suffers least, if less than the other gains."""
        columns = scene.state.columns
        feasible = scene.landing.feasible(resident)
        asked = resident.pod.pod_class.requests.real
        coming = {name: asked.get(name, 0) for name in self._names}
        growth = self._imbalances(columns, feasible, coming) - self._imbalances(
            columns, feasible, {}
        )
        for place in np.argsort(growth, kind="stable").tolist():
            if growth[place] > gain:
                break
            row = int(feasible[place])
            if scene.landing.accepts(resident, row):
                return row
        return -1

    def _imbalances(self, columns: Columns, rows: Rows, change: Mapping[str, int]) -> _Floats:
        """Of several nodes, with so much more requested (rule 1)."""
        lines = np.array([columns.resource(name) for name in self._names], np.intp)
        more = np.array([[change.get(name, 0)] for name in self._names], np.float64)
        room = columns.allocatable[np.ix_(lines, rows)].astype(np.float64)
        used = columns.requested[np.ix_(lines, rows)] + more
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(room > 0, used / room, np.nan)
        if not rows.size:
            return np.zeros(0)
        present = ~np.isnan(shares)
        count = np.maximum(1, present.sum(axis=0))
        mean = np.where(present, shares, 0.0).sum(axis=0) / count
        squares = np.where(present, (shares - mean) ** 2, 0.0).sum(axis=0)
        return np.asarray(np.sqrt(squares / count), np.float64)


def _share(value: object, _problems: list[str]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"expected a number from 0 to 1, found {value!r}")
    return float(value)
