"""When each alert fires: not a minute before it should, never while all is well.

Prometheus's own unit tests of rules, over series as the programs export them, one sample a minute.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.deploy import alert_rules, test_promtool

pytestmark = test_promtool.pytestmark

#: Minutes for which what is well is looked at.
_LONG = 40
_LEADS = 'leader_election_master_status{name="koordlet-scheduler"}'
_BUCKET = "scheduler_scheduling_attempt_duration_seconds_bucket"


@dataclass(frozen=True)
class Case:
    """Series that make an alert fire at a minute, and those of a node that is well."""

    minute: int
    ill: dict[str, str]
    well: dict[str, str] = field(default_factory=dict)


CASES = {
    "KoordletNotReady": Case(5, {"koordlet_ready": "0"}, {"koordlet_ready": "1"}),
    "KoordletUnhealthy": Case(
        10, {'koordlet_check_healthy{check="x"}': "0"}, {'koordlet_check_healthy{check="x"}': "1"}
    ),
    "KoordletNotTicking": Case(
        6, {"koordlet_ticks_total": "9"}, {"koordlet_ticks_total": "0+60"}
    ),
    "KoordletLate": Case(
        11,
        {"koordlet_late_ticks_total": "0+9", "koordlet_ticks_total": "0+60"},
        {"koordlet_late_ticks_total": "0+5", "koordlet_ticks_total": "0+60"},
    ),
    "KoordletRefused": Case(
        16, {"koordlet_refusals_total": "0+60"}, {"koordlet_refusals_total": "9"}
    ),
    "KoordletContested": Case(
        16, {"koordlet_contested_total": "0+60"}, {"koordlet_contested_total": "9"}
    ),
    "KoordletPolicyFails": Case(
        1,
        {'koordlet_policy_failures_total{policy="x"}': "0+1"},
        {'koordlet_policy_failures_total{policy="x"}': "3"},
    ),
    "KoordletPolicyRolledBack": Case(
        1,
        {'koordlet_condition{type="PolicyRolledBack",subject="cpu_burst"}': "0+1"},
        {'koordlet_condition{type="PolicyRolledBack",subject="cpu_burst"}': "0"},
    ),
    "KoordletSourceSilent": Case(
        11,
        {
            'koordlet_source_healthy{source="x"}': "0",
            'koordlet_source_age_seconds{source="x"}': "0+60",
        },
        {
            'koordlet_source_healthy{source="x"}': "1",
            'koordlet_source_age_seconds{source="x"}': "400",
        },
    ),
    "KoordletPlanStuck": Case(
        5,
        {"koordlet_plan_steps": "2", "koordlet_enforcing": "1"},
        {"koordlet_plan_steps": "2", "koordlet_enforcing": "0"},
    ),
    "KoordletSeriesDropped": Case(
        30,
        {'koordlet_series_dropped{family="x"}': "1"},
        {'koordlet_series_dropped{family="x"}': "0"},
    ),
    "KoordletSilent": Case(
        5, {'up{job="koordlet-system/koordlet"}': "0"}, {'up{job="koordlet"}': "1"}
    ),
    "KoordletEvicts": Case(
        1,
        {'koordlet_evictions_total{policy="x",signal="y",outcome="evicted"}': "0+1"},
        {'koordlet_evictions_total{policy="x",signal="y",outcome="evicted"}': "3"},
    ),
    "KoordletEvictionsRefused": Case(
        7,
        {'koordlet_evictions_total{policy="x",signal="y",outcome="refused"}': "0+2"},
        {'koordlet_evictions_total{policy="x",signal="y",outcome="refused"}': "3"},
    ),
    "KoordletSchedulerNoLeader": Case(2, {_LEADS: "0"}, {_LEADS: "1"}),
    "KoordletSchedulerStuck": Case(
        5,
        {'scheduler_pending_pods{queue="active"}': "3", "scheduler_schedule_attempts_total": "7"},
        {
            'scheduler_pending_pods{queue="active"}': "3",
            "scheduler_schedule_attempts_total": "0+60",
        },
    ),
    "KoordletSchedulerSlow": Case(
        11,
        {f'{_BUCKET}{{le="0.1"}}': "0", f'{_BUCKET}{{le="+Inf"}}': "0+60",
         f'{_BUCKET}{{le="1"}}': "0+60"},
        {f'{_BUCKET}{{le="0.1"}}': "0+60", f'{_BUCKET}{{le="+Inf"}}': "0+60"},
    ),
    "KoordletSchedulerStoreRefuses": Case(
        11,
        {
            'scheduler_store_requests_total{result="ok"}': "0+60",
            'scheduler_store_requests_total{result="conflict"}': "0+10",
        },
        {
            'scheduler_store_requests_total{result="ok"}': "0+60",
            'scheduler_store_requests_total{result="conflict"}': "0+6",
        },
    ),
    "KoordletSchedulerPodsWait": Case(
        30,
        {'scheduler_pending_pods{queue="unschedulable"}': "2"},
        {'scheduler_pending_pods{queue="unschedulable"}': "0"},
    ),
    "KoordletSchedulerHomelessPods": Case(
        30, {"scheduler_homeless_pods": "1"}, {"scheduler_homeless_pods": "0"}
    ),
    "KoordletMigrationStuck": Case(
        35,
        {"koordlet_migration_oldest_seconds": "60+60"},
        {"koordlet_migration_oldest_seconds": "1800"},
    ),
    "KoordletDeschedulerIdle": Case(
        31,
        {'koordlet_descheduler_idle_seconds{reason="PDB"}': "1800+60"},
        {'koordlet_descheduler_idle_seconds{reason="PDB"}': "3600"},
    ),
}  # fmt: skip


def series(name: str, shown: dict[str, str]) -> list[dict[str, str]]:
    """As promtool takes them, of an instance of that name."""
    listed = []
    for selector, values in shown.items():
        metric, _, labels = selector.rstrip("}").partition("{")
        several = ",".join(part for part in (labels, f'instance="{name}"') if part)
        start, _, step = values.partition("+")
        spelled = f"{start}+{step or 0}x{_LONG}"
        listed.append({"series": f"{metric}{{{several}}}", "values": spelled})
    return listed


def judge(folder: Path, shown: dict[str, dict[str, str]], asked: dict[str, int]) -> tuple[int, str]:
    """Run promtool, which expects that nothing fires; its status, and what it says of alerts."""
    expected = [
        {"eval_time": f"{at}m", "alertname": name, "exp_alerts": []} for name, at in asked.items()
    ]
    every = [row for name, several in shown.items() for row in series(name, several)]
    tests = [{"interval": "1m", "input_series": every, "alert_rule_test": expected}]
    rules = [str(file) for file in sorted(alert_rules.ALERTS.glob("*.yaml"))]
    file = folder / "tests.yaml"
    body = {"rule_files": rules, "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(body))
    words = [str(test_promtool.PROMTOOL), "test", "rules", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


ILL = {name: case.ill for name, case in CASES.items()}


def test_each_is_silent_until_its_time(tmp_path: Path) -> None:
    """At the minute before it."""
    status, output = judge(tmp_path, ILL, {name: case.minute - 1 for name, case in CASES.items()})

    assert status == 0, output


def test_none_fires_while_all_is_well(tmp_path: Path) -> None:
    """However long that is."""
    well = {name: case.well for name, case in CASES.items()}
    status, output = judge(tmp_path, well, dict.fromkeys(CASES, _LONG))

    assert status == 0, output


def test_each_fires_at_its_time(tmp_path: Path) -> None:
    """Every one of them is told then; no alert has no case."""
    _, output = judge(tmp_path, ILL, {name: case.minute for name, case in CASES.items()})

    fired = set(re.findall(r"alertname: (\w+)", output))
    assert fired == CASES.keys() == {rule["alert"] for rule in alert_rules.EVERY}, output


@pytest.mark.parametrize("minute", [1, 2])
def test_no_scheduler_at_all(tmp_path: Path, minute: int) -> None:
    """Nobody who answers is nobody who leads."""
    status, _ = judge(tmp_path, {"x": {"up": "1"}}, {"KoordletSchedulerNoLeader": minute})

    assert status == (0 if minute == 1 else 1)
