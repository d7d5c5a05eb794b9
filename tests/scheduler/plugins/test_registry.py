"""Every plugin by name: the default order, weights, and what this scheduler lacks."""

from __future__ import annotations

from koordlet.scheduler.plugins import registry


def test_default_plugins_have_names_of_their_own_that_are_neither_built_in_nor_lacking() -> None:
    """A name decides which plugin a profile means: no two may have one."""
    names = [plugin.name for plugin, _ in registry.DEFAULT]

    assert len(names) == len(set(names))
    assert not set(names) & (registry.BUILT_IN | registry.LACKING)
    assert not registry.BUILT_IN & registry.LACKING


def test_scores_have_kube_schedulers_weights_and_a_reservation_outweighs_them_all() -> None:
    """Less than one point of a reservation's is all others together; to be avoided is worse."""
    weights = {plugin.name: weight for plugin, weight in registry.DEFAULT if weight}
    reservation, avoidance = weights.pop("Reservation"), weights.pop("NodeAvoidance")

    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "LoadAwareScheduling": 1,
        "NodeNUMAResource": 1,
        "DeviceShare": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert 100 * sum(weights.values()) < reservation < avoidance


def test_known_plugins_are_the_default_ones_with_their_weights() -> None:
    """Without an entry point of somebody else's, a profile can name these and no others."""
    known = registry.known()
    for plugin, weight in registry.DEFAULT:
        assert known[plugin.name] == (plugin, weight)
