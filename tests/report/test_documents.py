"""Attributes of our values as JSON."""

from __future__ import annotations

import json

from koordlet.model import cpuset, ledger
from koordlet.report import documents
from tests.kit import views


def test_fields_come_in_the_order_named_with_keys_in_camel_case() -> None:
    """A key is the attribute in camel case, or the word before the equals sign."""
    workload = views.workload("web")

    fields = documents.fields(workload, "name cpu_count cgroup=group kubelet_says=stale")

    assert json.dumps(fields) == (
        '{"name": "web", "cpuCount": null, "cgroup": "shop/web", "kubelet_says": false}'
    )


def test_sets_of_cpus_and_members_of_enums_are_texts_and_tuples_lists() -> None:
    """What JSON does not know has one spelling in every document."""
    claim = ledger.Claim(
        owner=ledger.Owner.LSE,
        cpus=cpuset.CPUSet.span(2, 5),
        holder="shop/web",
        policy="p",
        reason="r",
    )
    workload = views.workload("web")

    assert documents.fields(claim, "owner cpus") == {"owner": "LSE", "cpus": "2-5"}
    assert documents.fields(workload, "problems requests") == {"problems": [], "requests": {}}
