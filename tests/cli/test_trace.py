"""``koordlet trace``: one pass told station by station, on recordings and the kernel stand-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.apply import trace
from koordlet.cli import trace as trace_command
from koordlet.cli import trace_table
from koordlet.host import machine
from koordlet.host.recording import read_log
from koordlet.model import observed, snapshot
from koordlet.report import trace_json
from koordlet.state import journal
from tests.kit import agents, machines, pods, recordings
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


def trace_pass(
    site: agents.Site, *, observation: observed.Observed | None = None, observes: str = ""
) -> trace_json.Traced:
    """Trace one pass over what the site's agents left, from the outside of any agent."""
    identity = machine.identify(site.host)
    entries = journal.peek(
        site.paths.journal, machine_id=identity.machine_id, boot_id=identity.boot_id
    )
    log, stations = read_log.ReadLog(site.host), trace.Trace()
    line = site.line(log)
    line.observation.take = lambda: observation
    draft = line.draft(entries, trace=stations)
    return trace_command.traced_pass(
        line,
        draft,
        stations,
        answers=log.answers,
        journaled=len(entries),
        failed=trace_command.failed_last(site.paths.audit),
        observes=observes,
    )


def describe_pass(site: agents.Site, choice: trace_json.Choice = trace_json.ALL) -> Document:
    """The document of one pass."""
    return trace_json.document(trace_pass(site), choice)


def table(document: Document, *, detailed: bool = False) -> str:
    """The same for a person."""
    return "\n".join(trace_table.lines(dict(document), detailed=detailed))


def policy_of(document: Document, stem: str) -> Document:
    """What one policy saw and decided."""
    [policy] = [row for row in document["policies"] if row["policy"] == stem]
    assert isinstance(policy, dict)
    return policy


def test_a_pass_that_writes_names_each_step_and_who_would_do_it(site: agents.Site) -> None:
    """What was read, who wants what and why, the order; nothing is written."""
    image = site.image()
    document = describe_pass(site)
    text = table(document)

    assert any("/web/" in step["target"] for step in document["order"])
    due = [wish for wish in document["wishes"] if wish["target"] == CPUS]
    assert [(wish["policy"], wish["fate"], wish["value"]) for wish in due] == [
        ("shared_pools", "due", "2-3")
    ]
    assert document["order"][due[0]["steps"][0]]["target"] == CPUS
    assert f"WriteFile {CPUS}  0-4 → 2-3" in text
    assert "an agent that enforces does them in its next pass" in text
    assert "! host/gone is not running: cgroup=gone" in text
    assert document["read"]["files"]["read"] > 10
    assert site.image() == image


def test_each_policy_sees_the_claims_of_those_before_it(site: agents.Site) -> None:
    """The first sees none, the pools see the reserved and the exclusive CPUs."""
    document = describe_pass(site)

    assert policy_of(document, "reserved_cpus")["saw"]["claims"] == []
    claims = policy_of(document, "shared_pools")["saw"]["claims"]
    assert [(claim["cpus"], claim["holder"]) for claim in claims] == [
        ("0", "node"),
        ("2-3", "host/web"),
    ]


def test_a_quiet_pass_says_that_everything_is_so_already(site: agents.Site) -> None:
    """No step; each action is so already, and the journal says what is koordlet's."""
    site.settle()
    document = describe_pass(site)

    assert (document["order"], document["left"]) == ([], [])
    assert {wish["fate"] for wish in document["wishes"]} == {"alreadySo"}
    assert document["read"]["journaled"] > 0
    assert "nothing is due: the machine is as the policies want it" in table(document)


def test_a_policy_that_wants_nothing_says_why(site: agents.Site) -> None:
    """Its facts, what it lacks, or that nothing here is its concern; off names who said so."""
    document = describe_pass(site)

    idle = policy_of(document, "housekeeping")
    assert "policies.housekeeping.mode (built-in)" in idle["whyNothing"]
    for row in document["policies"]:
        wants = row["fates"] or row["claims"] or row["pools"] or row["evictions"]
        assert bool(row["whyNothing"]) is not bool(wants), row["policy"]


def test_a_policy_in_shadow_is_shown_and_not_done(site: agents.Site) -> None:
    """Its steps are in the order, marked, with the key that keeps them from being done."""
    site.config = CONFIG.replace("policies:", "policies:\n  shared_pools: {mode: shadow}")
    document = describe_pass(site)
    text = table(document)

    assert {step["mode"] for step in document["order"]} == {"shadow"}
    assert "policies.shared_pools.mode is shadow (config.yaml:" in document["written"]["why"][1]
    assert "[shadow]" in text
    assert "only shown" in text


def test_what_no_policy_enforces_any_more_is_put_back(site: agents.Site) -> None:
    """The steps that undo are nobody's wish: the policy in shadow finds its values there."""
    site.settle()
    site.config = CONFIG.replace("policies:", "policies:\n  shared_pools: {mode: shadow}")
    document = describe_pass(site)

    assert {step["undo"] for step in document["order"]} == {True}
    assert {wish["fate"] for wish in document["wishes"]} == {"alreadySo"}
    assert "[undo]" in table(document)


def test_an_agent_that_only_observes_is_named(site: agents.Site) -> None:
    """The steps are due, and the reason stands beside them why nobody does them."""
    document = trace_json.document(trace_pass(site, observes="not running as root"))

    assert "but an agent here only observes: not running as root" in table(document)


def test_a_failing_policy_is_named_with_its_error(site: agents.Site) -> None:
    """What it wrote before stays."""
    site.rows = (*site.rows, agents.fixed())
    site.settings = {"fixed": agents.Sets(error=ValueError("broken"))}
    document = describe_pass(site)

    assert policy_of(document, "fixed")["failure"] == "ValueError: broken"
    assert "fixed failed, so what it wrote before stays: ValueError: broken" in table(document)


def test_a_step_that_failed_before_says_so(site: agents.Site) -> None:
    """The kernel's refusal, from the audit log, stands below the step that is due again."""
    site.host.mkdir(site.host.at("/sys/fs/cgroup/cpuset/box"))
    site.host.mkdir(site.host.at("/sys/fs/cgroup/cpuset/box/gone"))
    site.config = CONFIG.replace("cgroup: gone", "cgroup: box/gone")
    site.settle()
    document = describe_pass(site)
    failed = [step["failed"].partition(":")[0] for step in document["order"]]

    assert "refused" in failed
    assert "! tried last: refused: E" in table(document)
    assert "due again: an agent here tried, and failed" in table(document)


def test_a_stale_source_says_how_old_its_answer_is(site: agents.Site) -> None:
    """And for how long it is believed; one that never answered says that."""
    now = site.clock().at
    problem = "connection refused"
    observation = observed.Observed(
        sources=(
            snapshot.Source(
                name="kubelet pods", ok=False, last_good=now - 93, max_age=60, problem=problem
            ),
            snapshot.Source(name="cluster node", ok=False, max_age=60, problem=problem),
        )
    )
    document: Document = trace_json.document(trace_pass(site, observation=observation))

    stale = {source["name"]: source["stale"] for source in document["read"]["sources"]}
    assert stale == {
        "configuration": False,
        "kubelet pods": True,
        "cluster node": True,
        "counters": False,
    }
    assert (
        "kubelet pods: STALE, last answer 93 s ago, believed for 60 s: connection refused"
        in table(document)
    )
    assert "cluster node: STALE, no answer yet" in table(document)


def test_one_policy_is_told_with_what_it_saw(site: agents.Site) -> None:
    """Settings, state, claims and each action; the reasons of the whole pass stay."""
    document = describe_pass(site, trace_json.Choice(policy="shared_pools"))
    text = table(document, detailed=True)

    assert [row["policy"] for row in document["policies"]] == ["shared_pools"]
    assert {wish["policy"] for wish in document["wishes"]} == {"shared_pools"}
    assert "settings   Settings(" in text
    assert "claimed before it: 2-3 LSR host/web" in text
    assert f"{CPUS} 2-3 by shared_pools" in text


def test_one_group_is_told_with_all_who_want_something_there(site: agents.Site) -> None:
    """Its workload, its files, its actions, and nobody else's."""
    document = describe_pass(site, trace_json.Choice(group="web"))

    assert {wish["group"] for wish in document["wishes"]} == {"web"}
    assert [row["workload"] for row in document["read"]["workloads"]] == ["host/web"]
    assert "shared_pools" in {row["policy"] for row in document["policies"]}
    assert "housekeeping" not in {row["policy"] for row in document["policies"]}


def test_a_trace_changes_nothing_of_a_pass(site: agents.Site) -> None:
    """The same decisions and the same draft, with a trace and without."""
    plain = site.line().draft({})
    traced = site.line().draft({}, trace=trace.Trace())

    assert (plain.round, plain.draft) == (traced.round, traced.draft)


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A recorded machine of 16 CPUs and a configuration, as options."""
    (tmp_path / "config.yaml").write_text(agents.HEADER + CONFIG)
    machines.to_directory(machines.xeon_2s_smt2(), tmp_path / "root")
    return ["--root", str(tmp_path / "root"), "--config", str(tmp_path / "config.yaml")]


def run_trace(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command; what it prints."""
    status = cli.main(["trace", *words])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out


def test_a_recorded_machine_is_told_the_same_twice(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Version first, all stations, and no clock of this machine."""
    first = run_trace(capsys, *words, "-o", "json")
    document = json.loads(first)

    assert list(document) == [
        *("version", "at", "live", "read", "policies", "wishes", "order", "left", "written"),
    ]
    assert (document["version"], document["live"]) == ("v1", False)
    assert document["written"]["why"][0] == "a recorded machine cannot be changed"
    assert run_trace(capsys, *words, "-o", "json") == first


def test_the_stations_stand_in_their_order(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Read, decided, compared, ordered, written."""
    text = run_trace(capsys, *words)
    places = [text.index(f"\n{word}") for word in ("Read", "Decided", "Compared", "Ordered")]

    assert places == sorted(places)
    assert text.index("\nWritten: nothing") > places[-1]


def test_a_broken_annotation_is_told_with_its_pod(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It costs itself; the pod is told all the same, with what is wrong."""
    listed = {"kind": "Pod", **pods.annotated("koordinator.sh/cpuBurst", "{broken")}
    (tmp_path / "pods.json").write_text(json.dumps(listed))
    text = run_trace(capsys, *words, "--pods", str(tmp_path / "pods.json"))

    assert "koordinator.sh/cpuBurst" in text.partition("\nDecided")[0]


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Four frames, one each second, of a machine that is one eighth busy."""
    return str(recordings.record_load(tmp_path))


@pytest.mark.parametrize(("after", "at"), [((), 3), (("--after", "1s"), 1), (("--after", "0"), 0)])
def test_a_recording_is_told_at_its_end_or_when_asked(
    recording: str, capsys: pytest.CaptureFixture[str], after: tuple[str, ...], at: int
) -> None:
    """The moments before it give rates: what is not known at the first is known later."""
    change = ("--set", "policies.cpu_suppress.enable=true")
    document = json.loads(run_trace(capsys, "--root", recording, *after, *change, "-o", "json"))

    assert document["at"] == 1_000_100 + at
    limit = policy_of(document, "cpu_suppress")["explanation"]["limit"]
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
    error = capsys.readouterr().err

    assert culprit in error
    assert fix in error
