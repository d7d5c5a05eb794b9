"""Who may call what, and how often."""

from __future__ import annotations

from koordlet.rpc import access
from koordlet.rpc.permissions import Right


def test_rules_give_rights() -> None:
    """Names match exactly or by one label; rights of several rules add up."""
    it = access.CallAccess(
        [
            access.AccessRule(name="*.nodes.example", rights=frozenset({Right.REPORT})),
            access.AccessRule(name="spiffe://example/console", rights=frozenset({Right.READ})),
            access.AccessRule(name="a.nodes.example", rights=frozenset({Right.READ})),
        ]
    )

    assert {Right.REPORT} == it.rights(["b.nodes.example"])
    assert {Right.REPORT, Right.READ} == it.rights(["a.nodes.example"])
    assert {Right.READ} == it.rights(["spiffe://example/console"])
    for other in ("nodes.example", "x.b.nodes.example", ".nodes.example", "spiffe://example/c"):
        assert frozenset() == it.rights([other]), other


def test_calls_are_limited_for_each_address() -> None:
    """One that floods has no turn left; another has all of its own; time gives turns back."""
    now = [0.0]
    it = access.CallAccess(rate=2, burst=3, clock=lambda: now[0])

    assert [it.spend("ipv4:10.0.0.1:1000") for _ in range(4)] == [True, True, True, False]
    assert not it.spend("ipv4:10.0.0.1:2000"), "another port is the same machine"
    assert it.spend("ipv4:10.0.0.2:1000")
    now[0] = 1.0
    assert [it.spend("ipv4:10.0.0.1:1000") for _ in range(3)] == [True, True, False]


def test_the_table_is_bounded() -> None:
    """A million addresses are not remembered."""
    it = access.CallAccess()
    for number in range(10_000):
        it.spend(f"ipv4:10.{number >> 8}.{number & 255}.1:1")

    assert len(it._buckets) <= 4096
