"""``koordlet explain write``: who wants what in a file, what was there, what was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import explain_write
from koordlet.host import machine
from koordlet.report import audit_json, documents
from koordlet.state import journal
from tests.kit import agents, machines, sites

CPUS = "/sys/fs/cgroup/cpuset/web/cpuset.cpus"


@pytest.fixture
def site(ram: Path) -> agents.Site:
    """Three workloads on cgroup v1."""
    return sites.workloads("v1", ram)


def explain(site: agents.Site, path: str = CPUS) -> documents.Document:
    """All that is known of a file, from the outside of any agent."""
    identity = machine.identify(site.host)
    entries = journal.peek(
        site.paths.journal, machine_id=identity.machine_id, boot_id=identity.boot_id
    )
    records = audit_json.document(site.paths.audit, audit_json.AuditQuery(target=path))
    return explain_write.document(
        path,
        site.host,
        site.line().draft(entries),
        entries.get(path),
        documents.rows(records, "records"),
    )


def explain_in_words(site: agents.Site, path: str = CPUS) -> str:
    """The same for a person."""
    return "\n".join(explain_write.lines(explain(site, path)))


def test_before_anything_was_done(site: agents.Site) -> None:
    """Who wants what and why, what the file takes, whose it is."""
    document = explain(site)
    [wish] = documents.rows(document, "wanted")

    assert (document["verdict"], document["pod"]) == ("to be written", "host/web")
    assert document["before"] is None
    assert wish["value"] == documents.rows(document, "actions")[0]["value"]
    assert documents.part(document, "file")["name"] == "cpuset.cpus"
    assert f"wanted   {wish['value']} by shared_pools: {wish['reason']}" in explain_in_words(site)


def test_once_it_was_done(site: agents.Site) -> None:
    """What was there before, what is ours, what the log says; nothing is repaired by looking."""
    original = explain(site)["value"]
    site.settle()
    kept = site.paths.journal.read_bytes()
    document = explain(site)

    assert document["verdict"] == "as it is wanted"
    before = documents.part(document, "before")
    assert (original, [document["value"]]) == (before["original"], before["ours"])
    assert document["value"] == documents.rows(document, "records")[0]["value"]
    assert f"before   {original!r}, until 2026-" in explain_in_words(site)
    assert "UTC done: " in explain_in_words(site)
    assert kept == site.paths.journal.read_bytes()


def test_what_nobody_wants_any_more(site: agents.Site) -> None:
    """It is put back, and the answer says so."""
    site.settle()
    site.config = ""

    assert "it is put back" in str(explain(site)["verdict"])


def test_what_is_nobody_s(site: agents.Site) -> None:
    """No policy wants anything, koordlet has not written it; absent files are said to be that."""
    assert "nobody's" in str(explain(site, "/sys/fs/cgroup/cpu/web/cpu.shares")["verdict"])
    assert "not there" in explain_in_words(site, "/sys/fs/cgroup/nowhere/else")


def test_what_was_put_back(site: agents.Site) -> None:
    """Nobody wants it and nothing is left of it, but the log is not contradicted."""
    site.config = ""
    done = {"at": 1.79e9, "verdict": "done", "policy": "adaptive", "was": "-1", "value": "5000"}
    records = [{**done, "reason": "adaptive: it hurts"}, {**done, "reason": "back to what it was"}]
    document = explain_write.document(CPUS, site.host, site.line().draft({}), None, records)
    text = "\n".join(explain_write.lines(document))

    assert "nobody's now: " in text
    assert "has not written it" not in text
    assert "(adaptive: it hurts)" in text
    assert "(adaptive: back to what it was)" in text


def test_a_journal_of_another_boot_says_nothing(site: agents.Site) -> None:
    """Its groups are gone with their boot."""
    site.settle()

    assert journal.peek(site.paths.journal, machine_id="another", boot_id="another") == {}


def test_a_recorded_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document; neither journal nor log of the machine that it is looked at on."""
    machines.to_directory(machines.xeon_2s_smt2(), tmp_path)
    assert cli.main(["explain", "write", CPUS, "--root", str(tmp_path), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)

    assert next(iter(document)) == "version"
    assert (document["path"], document["before"], document["records"]) == (CPUS, None, [])


@pytest.mark.parametrize("path", ["web/cpuset.cpus", "/sys/../etc/passwd", "/a//b"])
def test_what_is_no_path(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A usage error that says how to name one."""
    assert cli.main(["explain", "write", path]) == 2
    assert "koordlet plan" in capsys.readouterr().err
