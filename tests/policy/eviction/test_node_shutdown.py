"""Who ends in which row of a shutdown, as the kubelet's table has it, and with how much time."""

from __future__ import annotations

import pytest

from koordlet.model import pod, qos
from koordlet.policy.eviction import node_shutdown

TABLE = node_shutdown.rows(0, 0, [(9000, 20), (node_shutdown.CRITICAL, 5), (0, 10)])


def workload(name: str, of: qos.Qos = qos.Qos.LS, **more: object) -> pod.Pod:
    """A workload of this machine."""
    return pod.Pod(uid=name, namespace="host", name=name, qos=of, source="test", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "critical", "expected"),
    [(30, 10, [(0, 20), (2_000_000_000, 10)]), (30, 0, [(0, 30), (2_000_000_000, 0)]), (0, 0, [])],
)
def test_two_numbers_make_two_rows(
    seconds: int, critical: int, expected: list[tuple[int, int]]
) -> None:
    """Critical workloads have the last seconds; both zero delay nothing."""
    made = node_shutdown.rows(seconds, critical, [])
    assert [(row.priority, row.seconds) for row in made] == expected


@pytest.mark.parametrize(
    ("who", "row"),
    [
        (workload("below", priority=-5), 0),
        (workload("batch", qos.Qos.BE), 0),
        (workload("edge", priority=9000), 1),
        (workload("under", priority=8999), 0),
        (workload("web"), 1),
        (workload("system", priority=2_000_000_000), 2),
        (workload("static", static=True), 2),
    ],
    ids=lambda value: value.name if isinstance(value, pod.Pod) else str(value),
)
def test_a_workload_is_in_the_row_with_the_greatest_priority_that_is_not_above_its_own(
    who: pod.Pod, row: int
) -> None:
    """Below all rows it is in the lowest; without a priority that of its class counts."""
    assert node_shutdown.row_of(who, TABLE) == row


def test_a_row_takes_whoever_came_late_and_nobody_twice() -> None:
    """What started after its own row is ended with a later one. SYSTEM is systemd's own to end."""
    batch, web = workload("batch", qos.Qos.BE), workload("web")
    gone = workload("gone", qos.Qos.BE, phase=pod.Phase.SUCCEEDED)
    everybody = [batch, web, gone, workload("sshd", qos.Qos.SYSTEM)]
    assert node_shutdown.due(everybody, TABLE, 0, frozenset()) == (batch,)
    late = workload("late", qos.Qos.BE)
    assert node_shutdown.due([*everybody, late], TABLE, 1, frozenset({"batch"})) == (web, late)


@pytest.mark.parametrize(("asks", "gets"), [(None, 9), (3, 3), (60, 9), (0, 0)])
def test_a_grace_ends_a_second_before_its_row(asks: int | None, gets: int) -> None:
    """What does not end by itself is killed within the row, and not left to the next."""
    row = node_shutdown.Row(0, 10)
    assert node_shutdown.victim(workload("batch", grace_seconds=asks), row).grace_seconds == gets
