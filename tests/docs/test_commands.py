"""Every command of the documents: its options exist, and it is run, or a reason says why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from koordlet import cli
from tests.docs import commands
from tests.kit import clusters, quotas

FIXTURES = commands.REPO / "fixtures"
MACHINE = FIXTURES / "sysfs" / "power-smt8.tar.gz"
SHOWN = commands.shown()

#: Commands that are not run from here, and where they are. What they are given is parsed.
ELSEWHERE = {
    "run": "an agent until it is told to stop: tests/e2e runs it, with and without root",
    "restore": "of this machine's own state: tests/e2e, tests/vm/test_systemd.py",
    "top": "needs an agent: tests/cli/test_top.py runs it over recorded views",
    "get": "needs an agent: tests/cli/test_get_watch.py",
    "watch": "needs an agent: tests/cli/test_get_watch.py",
    "audit": "needs a log: tests/cli/test_audit.py",
    "replay": "needs a recording with frames: tests/cli/test_replay.py",
    "schedule": "needs a scheduler: tests/agent/test_cluster_run.py",
    "scheduler": "until it is told to stop: tests/scheduler/process/test_lifecycle.py",
    "descheduler": "needs an API server: tests/scheduler/process/test_descheduler.py",
    "webhook": "needs an API server: tests/scheduler/process/test_webhook.py",
    "drain": "needs an API server: tests/cli/test_moves.py; of files tests/cli/test_drain.py",
    "evict": "needs an API server: tests/cli/test_moves.py; of files tests/cli/test_drain.py",
    "reschedule": "needs a cluster or a scheduler: tests/cli/test_reschedule.py",
    "migrate": "needs a cluster or a scheduler: tests/cli/test_migrate.py",
    "reserve": "needs a scheduler: tests/cli/test_reserve.py",
    "describe": "needs a scheduler: tests/cli/test_reserve.py",
    "delete": "needs a scheduler: tests/cli/test_reserve.py",
}
#: Options with which a command is not run from here.
UNSUITED = {
    "--for": "records for minutes: tests/cli/test_record.py",
    "--cluster": "asks an API server: tests/cli/test_config.py",
    "slo.yaml": "a file of the reader's cluster: tests/cli/test_config.py",
    "changed.yaml": "a file of the reader's cluster: tests/scheduler/sim/test_what_if.py",
    "profiles.yaml": "a file of the reader's cluster: tests/cli/test_sim.py",
    "--deschedule": "a policy of the reader's cluster: tests/cli/test_descheduling.py",
    "quota": "asks a scheduler: tests/cli/test_quotas.py",
    "claim": "asks a scheduler: tests/cli/test_claims.py",
    "migration": "asks a descheduler: tests/scheduler/process/test_moves_pages.py",
}
RUN = [words for words in SHOWN if words[0] not in ELSEWHERE and not UNSUITED.keys() & set(words)]
#: Exit status by its first words, where that is not 0 on the recorded machine, with the reason.
STATUS = {
    ("explain", "plan"): (1, "the pod fits as it is, and the only node cannot be emptied"),
    ("explain", "pod"): (2, "the recorded machine runs no such pod"),
    ("trace", "--group"): (2, "the recorded machine has no such cgroup"),
    ("check", "--strict"): (1, "a recording of sysfs alone lacks what enforcing needs"),
}


#: Named alone in a sentence, they need more to be run: their help is.
BARE = {
    *(("alerts",), ("drain",), ("evict",), ("explain",), ("get",), ("migrate",)),
    *(("migrate-check",), ("sim",), ("watch",), ("webhook",)),
}


def meant(words: tuple[str, ...]) -> list[str]:
    """What is run for a command of a document."""
    return [*words, "--help"] if words in BARE else list(words)


@pytest.mark.parametrize("words", [words for words in SHOWN if words not in BARE], ids=" ".join)
def test_its_options_exist(words: tuple[str, ...]) -> None:
    """The parser takes it as the document shows it."""
    assert cli.parser(words[0]).parse_args(words).command == words[0]


def provide(words: tuple[str, ...]) -> None:
    """The files that documents speak of, here."""
    for name in words:
        if name.endswith((".tar.gz", ".tgz")) and words[0] != "record":
            shutil.copy(MACHINE, name)
    for name in ("nodes.yaml", "reservation-demo.yaml", "pod-demo-0.yaml"):
        shutil.copy(FIXTURES / "reservations" / name, name)
    shutil.copy("pod-demo-0.yaml", "pods.yaml")
    Path("quotas.yaml").write_text(json.dumps(quotas.quota("team-a", {"cpu": 12}, {"cpu": 10})))
    pod = clusters.pod("web", namespace="default", cpu="1")
    Path("all.json").write_text(json.dumps({"kind": "List", "items": [clusters.node("n1"), pod]}))


@pytest.mark.parametrize("words", RUN, ids=" ".join)
def test_it_runs(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a recorded machine, with the files that the document speaks of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KOORDLET_ROOT", str(MACHINE))
    provide(words)

    try:
        status = cli.main(meant(words))
    except SystemExit as end:  # --help
        status = int(end.code or 0)

    wanted = next((code for start, (code, _) in STATUS.items() if words[: len(start)] == start), 0)
    printed = capsys.readouterr()
    assert status == wanted, printed.err
    assert printed.out or printed.err


def test_every_reason_is_needed() -> None:
    """No command is left out that no document shows, and every document's page was read."""
    assert ELSEWHERE.keys() <= cli.COMMANDS.keys()
    named = {words[0] for words in SHOWN}
    assert ELSEWHERE.keys() <= named | {"get", "watch"}
    assert len(SHOWN) >= 30
