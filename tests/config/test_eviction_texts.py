"""The section's four maps, as ``model.thresholds`` reads them."""

from __future__ import annotations

from koordlet.config import eviction_texts, schema
from koordlet.model import thresholds
from tests.kit import agents


def test_nothing_said() -> None:
    """The kubelet's defaults, for pods as well."""
    found = eviction_texts.of(schema.defaults().policies.node_pressure)

    assert thresholds.Texts(enforce_pods=True) == found
    assert found.hard is None


def test_all_said() -> None:
    """Each map in its place; an empty map of hard thresholds is none, not the default."""
    text = (
        "policies:\n  node_pressure:\n"
        "    evictionHard: {}\n"
        "    evictionSoft: {memory.available: 1Gi}\n"
        "    evictionSoftGracePeriod: {memory.available: 90s}\n"
        "    evictionMinimumReclaim: {memory.available: 10Mi}\n"
        "    mergeDefaultEvictionSettings: true\n"
        "    enforceNodeAllocatable: [none]\n"
    )

    found = eviction_texts.of(agents.effective(text).config.policies.node_pressure)

    assert found == thresholds.Texts(
        hard={},
        soft={"memory.available": "1Gi"},
        soft_grace={"memory.available": "90s"},
        reclaim={"memory.available": "10Mi"},
        merge_defaults=True,
        enforce_pods=False,
    )
