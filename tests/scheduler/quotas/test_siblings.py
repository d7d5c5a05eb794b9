"""The quotas that name one parent."""

from __future__ import annotations

import random

from koordlet.model import resources
from koordlet.scheduler.quotas.siblings import NOBODY, Siblings
from tests.kit import quotas


def test_the_sum_of_minimums_follows_each_change() -> None:
    """Names come and go with the versions; what nobody has any more is not there."""
    chance, siblings = random.Random(28), Siblings()
    for _ in range(500):
        name = f"q{chance.randrange(9)}"
        if chance.random() < 0.3:
            siblings.drop(name)
        else:
            least = quotas.amounts(chance, 9, ("cpu", "memory", "gpu"))
            siblings.put(quotas.spec(name, least, {}))
        summed = resources.total(spec.min for spec in siblings.specs.values())
        assert siblings.minimum == {key: much for key, much in summed.items() if much}
    assert not NOBODY.specs
