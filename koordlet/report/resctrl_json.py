"""Owners of cache ways and memory bandwidth as one document. Pure.

Covers: ``koordlet resctrl -o json`` and what its table and picture are drawn from.
Does not cover: drawing (``cli.resctrl``, ``report.resctrl_svg``).
"""

from __future__ import annotations

from koordlet.model import resctrl, schemata, snapshot
from koordlet.report import documents

_USAGE = "domain llc_bytes=llc_bytes memory_bytes=total_bytes memory_local_bytes=local_bytes"


def render(now: snapshot.Snapshot) -> dict[str, object]:
    """The whole document; without resctrl the reasons alone."""
    missing = [
        documents.fields(gap, "feature why")
        for gap in now.unsupported
        if gap.feature.partition(".")[0] == "resctrl"
    ]
    control = now.resctrl
    if control is None:
        return {"mounted": False, "domains": [], "groups": [], "unsupported": missing}
    claims = {claim.control_group: f"{claim.namespace}/{claim.name}" for claim in now.claims}
    return {
        "mounted": True,
        **documents.fields(control, "mount options"),
        "domains": [*_caches(control), *_bandwidths(control)],
        "groups": [
            {**_group(control, group), "claim": claims.get(group.name, "")}
            for group in control.groups.values()
        ],
        "classes_of_service": control.hardware.most_groups,
        "unsupported": missing,
    }


def labels(now: snapshot.Snapshot) -> dict[str, str]:
    """Map each group to its name for people: that of the root has none, a claim's has its UID."""
    claims = {claim.control_group: claim.holder for claim in now.claims}
    groups = () if now.resctrl is None else now.resctrl.groups.values()
    return {group.name: claims.get(group.name, group.name or "root") for group in groups}


def _caches(control: resctrl.Resctrl) -> list[dict[str, object]]:
    return [
        {
            "resource": cache.name,
            "domain": domain,
            "ways": cache.ways,
            "mask": f"{cache.mask:x}",
            "shareable": f"{cache.shareable:x}",
            "owners": owners(control, cache, domain),
        }
        for cache in control.hardware.caches
        for domain in cache.domains
    ]


def owners(control: resctrl.Resctrl, cache: resctrl.Cache, domain: int) -> list[list[str]]:
    """For each way, the lowest first, the groups that may fill it; the root group is ``root``."""
    masks = {
        group.name or "root": schemata.parse(group.schemata).get(cache.name, domain) or 0
        for group in control.groups.values()
    }
    return [
        [name for name, mask in masks.items() if mask >> way & 1]
        for way in range(cache.mask.bit_length())
    ]


def _bandwidths(control: resctrl.Resctrl) -> list[dict[str, object]]:
    return [
        {
            "resource": bandwidth.name,
            "domain": domain,
            "unit": bandwidth.unit.value,
            "unlimited": bandwidth.free(domain),
            "limits": {
                group.name or "root": schemata.parse(group.schemata).get(bandwidth.name, domain)
                for group in control.groups.values()
            },
        }
        for bandwidth in control.hardware.bandwidths
        for domain in bandwidth.domains
    ]


def _group(control: resctrl.Resctrl, group: resctrl.Group) -> dict[str, object]:
    counted = f"{group.name}/mon_groups/".lstrip("/")
    threads: dict[str, int] = {}
    for workload, homes in control.homes.items():
        for name, pids in homes.items():
            if name == group.name or name.startswith(counted):
                threads[workload] = threads.get(workload, 0) + len(pids)
    return {
        "name": group.name or "root",
        "mode": group.mode,
        "schemata": {
            name: {str(domain): schemata.shown(name, value) for domain, value in values.items()}
            for name, values in schemata.parse(group.schemata).values.items()
        },
        "threads": threads,
        "usage": [
            documents.fields(use, _USAGE) for use in control.usage if use.group == group.name
        ],
    }
