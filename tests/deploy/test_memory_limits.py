"""The memory limits that are shipped: one for all who hold limits, above what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from koordlet.host.cgroup import followed

REPO = Path(__file__).parents[2]
_MIB = 1 << 20
_KNOWN = "all surfaces, and on v1 a workload with 11 900 groups: sets known, not counted"


def of_unit(name: str, key: str) -> int:
    """A limit of a unit in bytes."""
    match = re.search(rf"^{key}=(\d+)M$", (REPO / "systemd" / name).read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) * _MIB


def of_daemonset() -> int:
    """The limit of the agent's container in bytes."""
    text = (REPO / "deploy" / "agent" / "daemonset.yaml").read_text()
    (daemon_set,) = [
        document for document in yaml.safe_load_all(text) if document["kind"] == "DaemonSet"
    ]
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    match = re.fullmatch(r"(\d+)Mi", container["resources"]["limits"]["memory"])
    assert match is not None
    return int(match[1]) * _MIB


def measured() -> list[tuple[str, int]]:
    """The table of the operator's guide: what, and the larger of its columns, in bytes."""
    section = (REPO / "docs" / "operate.md").read_text().partition("### Memory\n")[2]
    rows = re.findall(r"^\| ([^|]+) \| *(\d+)? *\| *(\d+)? *\|$", section, re.MULTILINE)
    return [(what, 10**6 * max(int(a or 0), int(b or 0))) for what, a, b in rows if a or b]


def test_they_agree() -> None:
    """The container, the unit and the unit that restores have one limit, and the guide names it."""
    limits = {
        of_daemonset(),
        of_unit("koordlet.service", "MemoryMax"),
        of_unit("koordlet-restore.service", "MemoryMax"),
    }
    slow = {of_unit(f"{unit}.service", "MemoryHigh") for unit in ("koordlet", "koordlet-restore")}
    guide = (REPO / "docs" / "operate.md").read_text()

    assert (len(limits), len(slow)) == (1, 1)
    assert f"one limit, {limits.pop() // _MIB} MiB" in guide
    assert f"from {slow.pop() // _MIB} MiB on" in guide


def test_nothing_that_was_measured_comes_near() -> None:
    """The worst agent, with the process that validates its file, is not even slowed down."""
    guide = (REPO / "docs" / "operate.md").read_text()
    rows = dict(measured())
    (counted,) = [
        size for what, size in rows.items() if "followed groups inside workloads (4 000)" in what
    ]
    (validating,) = [size for what, size in rows.items() if what.startswith("validating")]
    known = int(followed.MOST_SETS * (rows[_KNOWN] - rows["all surfaces"]) / 11_900)
    worst = counted + known + validating

    assert (followed.MOST_OF_ALL, len(rows)) == (4000, 7)
    assert f"{counted // 10**6} + {known // 10**6} + {validating // 10**6} MB" in guide
    assert max(worst, *rows.values()) < of_unit("koordlet.service", "MemoryHigh")
