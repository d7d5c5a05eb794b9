"""A label that anybody may choose has a bounded number of values."""

from __future__ import annotations

from koordlet.scheduler.loop.metrics import SchedulerMetrics


def test_movers_beyond_the_first_ones_are_counted_as_one() -> None:
    """A migration job names its author; nothing that was counted is lost."""
    measures = SchedulerMetrics()
    for number in range(1000):
        measures.evicted(f"author-{number}", "Migrated", "Evicted")
        measures.evicted("author-0", "Migrated", "PDB")
    lines = [
        line
        for line in measures.text({}).splitlines()
        if line.startswith("koordlet_evictions_total{")
    ]

    assert len(lines) == 64 + 1 + 1
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 2000
    others = 'koordlet_evictions_total{by="others",cause="Migrated",result="Evicted"} 936'
    assert others in lines


def test_places_of_evictions_beyond_the_first_ones_are_counted_as_one() -> None:
    """Nodes come and go; nothing that was counted is lost."""
    measures = SchedulerMetrics()
    for number in range(3000):
        measures.decided("success", "LowNodeLoad", "p", f"space-{number % 7}", f"node-{number}")
        measures.decided("success", "LowNodeLoad", "p", "space-0", "node-0")
    for family in ("descheduler_pods_evicted_total", "koordlet_descheduler_pods_evicted_total"):
        lines = [line for line in measures.text({}).splitlines() if line.startswith(f"{family}{{")]
        assert len(lines) == 1000 + 1
        assert sum(int(line.rpartition(" ")[2]) for line in lines) == 6000
        (others,) = [line for line in lines if line.endswith(" 2000")]
        assert 'namespace="others",node="others"' in others
