"""``koordlet trace``: one pass told station by station, on recordings and the kernel stand-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.apply import trace
from koordlet.cli import record, trace_table
from koordlet.cli import trace as trace_command
from koordlet.host import machine
from koordlet.host.recording import directory, read_log
from koordlet.model import observed, snapshot
from koordlet.report import trace_json
from koordlet.state import journal
from tests.kit import agents, machines, pods
from tests.kit.kernel import Machine

CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: web, qos: LSR, cpus: "2-3", match: {cgroup: web}}
  - {name: api, qos: LS, match: {cgroup: api}}
  - {name: gone, qos: BE, match: {cgroup: gone}}
"""
CPUS = "/sys/fs/cgroup/cpuset/web/cpuset.cpus"

Document = Mapping[str, Any]


@pytest.fixture
def site(ram: Path) -> agents.Site:
    """Two workloads that run on cgroup v1, and one that does not."""
    host = Machine("0-4", cgroup="v1")
    for path in ("web", "api"):
        group = f"/sys/fs/cgroup/cpuset/{path}"
        host.mkdir(host.at(group))
        host.write(host.at(f"{group}/cpuset.cpus"), b"0-4\n")
        host.write(host.at(f"{group}/cpuset.mems"), b"0\n")
        host.spawn(group)
    return agents.Site(host, ram, config=CONFIG)


def traced(
    site: agents.Site, *, said: observed.Observed | None = None, observes: str = ""
) -> trace_json.Traced:
    """One pass over what the site's agents left, from the outside of any agent."""
    identity = machine.identify(site.host)
    entries = journal.peek(
        site.paths.journal, machine_id=identity.machine_id, boot_id=identity.boot_id
    )
    log, stations = read_log.ReadLog(site.host), trace.Trace()
    line = site.line(log)
    line.observation.take = lambda: said
    made = line.draft(entries, trace=stations)
    return trace_command.traced_pass(
        line,
        made,
        stations,
        answers=log.answers,
        journaled=len(entries),
        failed=trace_command.failed_last(site.paths.audit),
        observes=observes,
    )


def document(site: agents.Site, choice: trace_json.Choice = trace_json.ALL) -> Document:
    """The document of one pass."""
    return trace_json.document(traced(site), choice)


def table(found: Document, *, detailed: bool = False) -> str:
    """The same for a person."""
    return "\n".join(trace_table.lines(dict(found), detailed=detailed))


def policy(found: Document, stem: str) -> Document:
    """What one policy saw and decided."""
    [one] = [each for each in found["policies"] if each["policy"] == stem]
    assert isinstance(one, dict)
    return one


def test_a_pass_that_writes_names_each_step_and_who_would_do_it(site: agents.Site) -> None:
    """What was read, who wants what and why, the order; nothing is written."""
    image = site.image()
    found = document(site)
    said = table(found)

    assert [(s["target"], s["was"], s["value"]) for s in found["order"] if "/web/" in s["target"]]
    due = [wish for wish in found["wishes"] if wish["target"] == CPUS]
    assert [(w["policy"], w["fate"], w["value"]) for w in due] == [("shared_pools", "due", "2-3")]
    assert found["order"][due[0]["steps"][0]]["target"] == CPUS
    assert f"WriteFile {CPUS}  0-4 → 2-3" in said
    assert "an agent that enforces does them in its next pass" in said
    assert "! host/gone is not running: cgroup=gone" in said
    assert found["read"]["files"]["read"] > 10
    assert site.image() == image


def test_each_policy_sees_the_claims_of_those_before_it(site: agents.Site) -> None:
    """The first sees none, the pools see the reserved and the exclusive CPUs."""
    found = document(site)

    assert policy(found, "reserved_cpus")["saw"]["claims"] == []
    seen = policy(found, "shared_pools")["saw"]["claims"]
    assert [(claim["cpus"], claim["holder"]) for claim in seen] == [
        ("0", "node"),
        ("2-3", "host/web"),
    ]


def test_a_quiet_pass_says_that_everything_is_so_already(site: agents.Site) -> None:
    """No step; each action is so already, and the journal says what is koordlet's."""
    site.settle()
    found = document(site)

    assert (found["order"], found["left"]) == ([], [])
    assert {wish["fate"] for wish in found["wishes"]} == {"alreadySo"}
    assert found["read"]["journaled"] > 0
    assert "nothing is due: the machine is as the policies want it" in table(found)


def test_a_policy_that_wants_nothing_says_why(site: agents.Site) -> None:
    """Its facts, what it lacks, or that nothing here is its concern; off names who said so."""
    found = document(site)

    assert "policies.housekeeping.mode (built-in)" in policy(found, "housekeeping")["whyNothing"]
    for one in found["policies"]:
        wants = one["fates"] or one["claims"] or one["pools"] or one["evictions"]
        assert bool(one["whyNothing"]) is not bool(wants), one["policy"]


def test_a_policy_in_shadow_is_shown_and_not_done(site: agents.Site) -> None:
    """Its steps are in the order, marked, with the key that keeps them from being done."""
    site.config = CONFIG.replace("policies:", "policies:\n  shared_pools: {mode: shadow}")
    found = document(site)
    said = table(found)

    assert {step["mode"] for step in found["order"]} == {"shadow"}
    assert "policies.shared_pools.mode is shadow (config.yaml:" in found["written"]["why"][1]
    assert "[shadow]" in said
    assert "only shown" in said


def test_what_no_policy_enforces_any_more_is_put_back(site: agents.Site) -> None:
    """The steps that undo are nobody's wish: the policy in shadow finds its values there."""
    site.settle()
    site.config = CONFIG.replace("policies:", "policies:\n  shared_pools: {mode: shadow}")
    found = document(site)

    assert {step["undo"] for step in found["order"]} == {True}
    assert {wish["fate"] for wish in found["wishes"]} == {"alreadySo"}
    assert "[undo]" in table(found)


def test_an_agent_that_only_observes_is_named(site: agents.Site) -> None:
    """The steps are due, and the reason stands beside them why nobody does them."""
    found = trace_json.document(traced(site, observes="not running as root"))

    assert "but an agent here only observes: not running as root" in table(found)


def test_a_failing_policy_is_named_with_its_error(site: agents.Site) -> None:
    """What it wrote before stays."""
    site.rows = (*site.rows, agents.fixed())
    site.settings = {"fixed": agents.Sets(error=ValueError("broken"))}
    found = document(site)

    assert policy(found, "fixed")["failure"] == "ValueError: broken"
    assert "fixed failed, so what it wrote before stays: ValueError: broken" in table(found)


def test_a_step_that_failed_before_says_so(site: agents.Site) -> None:
    """The kernel's refusal, from the audit log, stands below the step that is due again."""
    site.host.mkdir(site.host.at("/sys/fs/cgroup/cpuset/box"))
    site.host.mkdir(site.host.at("/sys/fs/cgroup/cpuset/box/gone"))
    site.config = CONFIG.replace("cgroup: gone", "cgroup: box/gone")
    site.settle()
    found = document(site)
    failed = [step["failed"].partition(":")[0] for step in found["order"]]

    assert "refused" in failed
    assert "! tried last: refused: E" in table(found)
    assert "due again: an agent here tried, and failed" in table(found)


def test_a_stale_source_says_how_old_its_answer_is(site: agents.Site) -> None:
    """And for how long it is believed; one that never answered says that."""
    now = site.clock().at
    problem = "connection refused"
    said = observed.Observed(
        sources=(
            snapshot.Source(
                name="kubelet pods", ok=False, last_good=now - 93, max_age=60, problem=problem
            ),
            snapshot.Source(name="cluster node", ok=False, max_age=60, problem=problem),
        )
    )
    found: Document = trace_json.document(traced(site, said=said))

    stale = {one["name"]: one["stale"] for one in found["read"]["sources"]}
    assert stale == {
        "configuration": False,
        "kubelet pods": True,
        "cluster node": True,
        "counters": False,
    }
    assert (
        "kubelet pods: STALE, last answer 93 s ago, believed for 60 s: connection refused"
        in table(found)
    )
    assert "cluster node: STALE, no answer yet" in table(found)


def test_one_policy_is_told_with_what_it_saw(site: agents.Site) -> None:
    """Settings, state, claims and each action; the reasons of the whole pass stay."""
    found = document(site, trace_json.Choice(policy="shared_pools"))
    said = table(found, detailed=True)

    assert [one["policy"] for one in found["policies"]] == ["shared_pools"]
    assert {wish["policy"] for wish in found["wishes"]} == {"shared_pools"}
    assert "settings   Settings(" in said
    assert "claimed before it: 2-3 LSR host/web" in said
    assert f"{CPUS} 2-3 by shared_pools" in said


def test_one_group_is_told_with_all_who_want_something_there(site: agents.Site) -> None:
    """Its workload, its files, its actions, and nobody else's."""
    found = document(site, trace_json.Choice(group="web"))

    assert {wish["group"] for wish in found["wishes"]} == {"web"}
    assert [one["workload"] for one in found["read"]["workloads"]] == ["host/web"]
    assert "shared_pools" in {one["policy"] for one in found["policies"]}
    assert "housekeeping" not in {one["policy"] for one in found["policies"]}


def test_a_trace_changes_nothing_of_a_pass(site: agents.Site) -> None:
    """The same decisions and the same draft, with a trace and without."""
    plain = site.line().draft({})
    told = site.line().draft({}, trace=trace.Trace())

    assert (plain.round, plain.draft) == (told.round, told.draft)


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A recorded machine of 16 CPUs and a configuration, as options."""
    (tmp_path / "config.yaml").write_text(agents.HEADER + CONFIG)
    machines.to_directory(machines.xeon_2s_smt2(), tmp_path / "root")
    return ["--root", str(tmp_path / "root"), "--config", str(tmp_path / "config.yaml")]


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints."""
    status = cli.main(["trace", *words])
    said = capsys.readouterr()
    assert status == 0, said.err
    return said.out


def test_a_recorded_machine_is_told_the_same_twice(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Version first, all stations, and no clock of this machine."""
    first = asked(capsys, *words, "-o", "json")
    found = json.loads(first)

    assert list(found) == [
        *("version", "at", "live", "read", "policies", "wishes", "order", "left", "written"),
    ]
    assert (found["version"], found["live"]) == ("v1", False)
    assert found["written"]["why"][0] == "a recorded machine cannot be changed"
    assert asked(capsys, *words, "-o", "json") == first


def test_the_stations_stand_in_their_order(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Read, decided, compared, ordered, written."""
    said = asked(capsys, *words)
    places = [said.index(f"\n{word}") for word in ("Read", "Decided", "Compared", "Ordered")]

    assert places == sorted(places)
    assert said.index("\nWritten: nothing") > places[-1]


def test_a_broken_annotation_is_told_with_its_pod(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It costs itself; the pod is told all the same, with what is wrong."""
    listed = {"kind": "Pod", **pods.annotated("koordinator.sh/cpuBurst", "{broken")}
    (tmp_path / "pods.json").write_text(json.dumps(listed))
    said = asked(capsys, *words, "--pods", str(tmp_path / "pods.json"))

    assert "koordinator.sh/cpuBurst" in said.partition("\nDecided")[0]


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Four frames, one each second, of a machine that is one eighth busy."""
    first = {"proc/stat": "cpu 0 0 0 0 0 0 0 0\n", "proc/uptime": "1 1\n"}
    tree = machines.to_directory(machines.xeon_2s_smt2() | first, tmp_path / "machine")
    at = 100.0

    def wait(seconds: float) -> None:
        nonlocal at
        at += seconds
        ticks = int(at - 100)
        (tree / "proc" / "stat").write_text(f"cpu {200 * ticks} 0 0 {1400 * ticks} 0 0 0 0\n")

    made = record.Plan(
        seconds=3.0, every=1.0, now=lambda: machine.Now(at=at, wall=1_000_000 + at), wait=wait
    )
    out = str(tmp_path / "node.tar.gz")
    record.write(directory.DirHost(str(tree)), out, made)
    return out


@pytest.mark.parametrize(("after", "at"), [((), 3), (("--after", "1s"), 1), (("--after", "0"), 0)])
def test_a_recording_is_told_at_its_end_or_when_asked(
    recording: str, capsys: pytest.CaptureFixture[str], after: tuple[str, ...], at: int
) -> None:
    """The moments before it give rates: what is not known at the first is known later."""
    change = ("--set", "policies.cpu_suppress.enable=true")
    found = json.loads(asked(capsys, "--root", recording, *after, *change, "-o", "json"))

    assert found["at"] == 1_000_100 + at
    limit = policy(found, "cpu_suppress")["explanation"]["limit"]
    assert limit.startswith("not set yet") is (at == 0)


@pytest.mark.parametrize(
    ("question", "culprit", "fix"),
    [
        (("--policy", "shared_pool"), "--policy shared_pool", 'did you mean "shared_pools"?'),
        (("--group", "/nowhere"), "--group /nowhere", "no workload here has a cgroup"),
    ],
)
def test_what_is_not_there_is_a_usage_error(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    question: tuple[str, ...],
    culprit: str,
    fix: str,
) -> None:
    """The error names the culprit and what there is."""
    assert cli.main(["trace", *words, *question]) == 2
    said = capsys.readouterr().err

    assert culprit in said
    assert fix in said
