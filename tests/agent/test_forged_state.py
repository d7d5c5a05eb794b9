"""State that somebody damaged or forged: it costs itself, and nothing beyond our places is written.

``KOORDLET_SEED`` begins at another number; a failure names its seed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from koordlet.host.fs import root
from koordlet.model import errors, knob
from tests.kit import agents, dying, forgeries, sites

#: Forgeries in one state directory.
EACH = 5
#: Directories: 10 000 forgeries in a soak, 2 % of them in the ordinary suite, from any number on.
SOAK = 10_000 // EACH
ORDINARY = SOAK // 50

_NAMES = {name for row in knob.TABLE.values() for name in (row.v1, row.v2) if name} | {"tasks"}
_KNOBS = re.compile(r"/proc/[0-9]+/oom_score_adj|/proc/sys/vm/\w+|/sys/fs/resctrl/.*")


class Witness(dying.DyingHost):
    """Remembers every path that somebody tried to change."""

    def __init__(self, inner: root.HostRoot) -> None:
        super().__init__(inner, after=1 << 30)
        self.touched: list[str] = []

    def write(self, path: root.HostPath, data: bytes) -> None:
        self.touched.append(path)
        super().write(path, data)

    def mkdir(self, path: root.HostPath) -> None:
        self.touched.append(f"{path}/tasks")
        super().mkdir(path)

    def rmdir(self, path: root.HostPath) -> None:
        self.touched.append(f"{path}/tasks")
        super().rmdir(path)

    def unmount(self, target: root.HostPath) -> None:
        self.touched.append(f"{target}/")
        super().unmount(target)


def is_ours(path: str) -> bool:
    """Whether koordlet may write there: said once more, in other words than the code's."""
    if ".." in path.split("/"):
        return False
    if path.startswith("/sys/fs/cgroup/"):
        return path.rpartition("/")[2] in _NAMES
    return _KNOBS.fullmatch(path) is not None


def settled(seed: int, place: Path) -> agents.Site:
    """What an agent left that was killed in a hand-over: both versions, with groups of its own."""
    scenes = tuple(sites.SCENES.values())
    site = scenes[seed % len(scenes)](place)
    with site.agent() as who:
        agents.settle(who, site.clock)
        who.hand_over()
    return site


def bear(seed: int, ram: Path) -> None:
    """An agent over forged state: refused in words, or it works and puts back what it can."""
    site = settled(seed, ram / str(seed))
    forger = forgeries.Forger(seed, site.paths)
    forged = f"seed {seed}:\n{forger.forge(EACH)}"
    witness = Witness(site.host)
    try:
        refused, failures = live(site, witness)
    except Exception as error:
        error.add_note(forged)
        raise
    assert refused is None or (refused.culprit and refused.fix), forged
    assert not failures, forged
    assert [path for path in witness.touched if not is_ours(path)] == [], forged
    assert forger.precious.read_text() == forgeries.PRECIOUS, forged
    shutil.rmtree(site.state)


def live(site: agents.Site, witness: Witness) -> tuple[errors.HostError | None, Mapping[str, int]]:
    """One agent from its start until it has put everything back; which policies failed."""
    try:
        with site.agent(witness) as who:
            who.overdue()
            who.one_pass(slow=True)
            who.one_pass(slow=False)
            who.restore()
            return None, who.publisher.counters.failures
    except errors.HostError as refused:
        return refused, {}


def test_forged_state_costs_itself(ram: Path) -> None:
    """Whatever state files hold or are, the agent says so or works, and writes to its places."""
    first = random.SystemRandom().randrange(SOAK)
    print(f"seeds from {first}")  # noqa: T201 -- shown where it fails
    for seed in range(first, first + ORDINARY):
        bear(seed, ram)


@pytest.mark.soak
def test_a_soak_of_forged_state(ram: Path) -> None:
    """The same, ten thousand forgeries."""
    first = int(os.environ.get("KOORDLET_SEED", "0"))
    for seed in range(first, first + SOAK):
        bear(seed, ram)
