"""Whose is each CPU: one value that every policy adds to."""

from __future__ import annotations

from koordlet.model import cpuset, ledger

Owner = ledger.Owner


def claim(owner: ledger.Owner, cpus: str) -> ledger.Claim:
    """CPUs of one owner."""
    return ledger.Claim(
        owner=owner, cpus=cpuset.CPUSet.parse(cpus), holder="h", policy="p", reason="r"
    )


BOOK = ledger.Ledger(
    claims=(claim(Owner.LSR, "2-4"), claim(Owner.RESERVED, "0-2")),
    pools=(
        ledger.Pool(kind="LS", cpus=cpuset.CPUSet.parse("5"), node=0),
        ledger.Pool(kind="LS", cpus=cpuset.CPUSet.parse("6-7"), node=1),
        ledger.Pool(kind="BE", cpus=cpuset.CPUSet.parse("3-7"), node=0),
    ),
)


def test_the_strongest_owner_is_shown() -> None:
    """Where claims overlap the stronger kind of owner holds the CPU."""
    owners = [None if holder is None else holder.owner for holder in map(BOOK.claim_on, range(6))]

    assert owners == [Owner.RESERVED] * 3 + [Owner.LSR] * 2 + [None]


def test_what_is_held() -> None:
    """CPUs are asked for by kinds of owners, or all together."""
    assert str(BOOK.held()) == "0-4"
    assert str(BOOK.held(Owner.LSR)) == "2-4"
    assert str(BOOK.held(Owner.LSE)) == ""


def test_a_pool_spans_nodes() -> None:
    """A pool is one set across all nodes."""
    assert (
        str(BOOK.pool("LS")),
        str(BOOK.pool("BE")),
        str(BOOK.pool("none")),
    ) == ("5-7", "3-7", "")


def test_adding_leaves_the_old_one() -> None:
    """A ledger is a value: adding makes another one."""
    more = BOOK.with_([claim(Owner.LSE, "9")])

    assert (len(BOOK.claims), len(more.claims), len(more.pools)) == (2, 3, 3)
