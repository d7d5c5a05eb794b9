"""How many examples a property gets where each one is expensive.

Covers: a share of the profile's examples, so that a soak multiplies them all alike.
Does not cover: the profiles (``tests.conftest``).
"""

from __future__ import annotations

import hypothesis

#: What the ordinary profile tries.
_ORDINARY = 100


def examples(count: int) -> hypothesis.settings:
    """``count`` examples in an ordinary run, in proportion more in a soak.

    A directory that a fixture gives may be shared between examples: each makes its own below it.
    """
    factor = hypothesis.settings().max_examples / _ORDINARY
    return hypothesis.settings(
        max_examples=max(1, round(count * factor)),
        suppress_health_check=[
            hypothesis.HealthCheck.function_scoped_fixture,
            hypothesis.HealthCheck.too_slow,
        ],
    )
