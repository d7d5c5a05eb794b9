"""``koordlet resctrl``: who owns which way, as letters, as a document, as a picture."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from koordlet.cli import resctrl
from koordlet.model import prepared_claim, snapshot
from koordlet.report import resctrl_json, resctrl_svg
from tests.kit import prepared_claims
from tests.kit import resctrl as kit


def settled_snapshot(rdt: str, state: Path, mount: str | None = "") -> snapshot.Snapshot:
    """A machine on which an agent has settled."""
    site = kit.site(kit.machine(rdt, mount=mount), state, ", beClass: {mbaPercent: 50}")
    if mount is not None:
        site.settle()
    return site.line().look()


def test_each_way_has_its_owners(ram: Path) -> None:
    """The document lists owners from the lowest way on; threads are counted by workload."""
    document = json.loads(json.dumps(resctrl_json.render(settled_snapshot("intel", ram))))
    ways = document["domains"][0]["owners"]
    be = next(group for group in document["groups"] if group["name"] == "BE")

    assert ["BE" in way for way in ways] == [True] * 4 + [False] * 8
    assert all("root" in way for way in ways)
    assert (be["threads"], be["schemata"]["L3"]["0"]) == ({"batch": 1}, "f")


def test_the_table_is_a_picture(ram: Path) -> None:
    """Highest way left, as the mask is read."""
    text = "\n".join(resctrl.lines(settled_snapshot("intel", ram)))

    assert "········████" in text
    assert "4 of 8 classes of service" in text
    assert "MB (%)" in text


def test_the_drawing_is_well_formed(ram: Path) -> None:
    """A rectangle for each way of each group and cache, and one for each bar."""
    now = settled_snapshot("amd", ram)
    control = now.resctrl
    assert control is not None
    drawing = resctrl_svg.render(control, resctrl_json.labels(now))
    tree = ET.fromstring(drawing)  # noqa: S314 -- our own text
    drawn = [element for element in tree.iter() if element.tag.endswith("rect")]

    assert len(drawn) == 4 * 2 * 16 + 4 * 2 * 2


def test_a_machine_without_says_why(ram: Path) -> None:
    """No error: an empty document with the reason."""
    now = settled_snapshot("intel", ram, mount=None)

    assert ["not mounted" in line for line in resctrl.lines(now)] == [True]
    assert resctrl_json.render(now)["mounted"] is False


def test_the_group_of_a_claim_has_the_claim_s_name(ram: Path) -> None:
    """In letters, in the picture and in the document; its own name is made of a UID."""
    now = settled_snapshot("intel", ram)
    assert now.resctrl is not None
    share = prepared_claim.CacheShare(request="cache", device="cache-0", cache=0, ways=2)
    claim = prepared_claims.claim("fast", share)
    group = dataclasses.replace(now.resctrl.groups["LS"], name=claim.control_group)
    control = dataclasses.replace(
        now.resctrl, groups={**now.resctrl.groups, claim.control_group: group}
    )
    claimed = dataclasses.replace(now, resctrl=control, claims=(claim,))

    assert "claim/t/fast  ████████████  fff" in "\n".join(resctrl.lines(claimed))
    assert "claim/t/fast" in resctrl_svg.render(control, resctrl_json.labels(claimed))
    groups: Any = resctrl_json.render(claimed)["groups"]
    assert {row["name"]: row["claim"] for row in groups} == {
        "root": "",
        "LSR": "",
        "LS": "",
        "BE": "",
        claim.control_group: "t/fast",
    }
