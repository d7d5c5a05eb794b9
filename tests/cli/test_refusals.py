"""What a command says where a folder is somebody else's, or an option would do nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.state import lock, paths

_NOBODY = 65534
_ROOT = "may hold what is to be put back, and only root can do that (run it as root)"


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder that this user may not enter; root becomes nobody for it."""
    before = os.geteuid()
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    if before == 0:
        os.seteuid(_NOBODY)
    else:
        folder.chmod(0)
    yield folder
    os.seteuid(before)
    folder.chmod(0o700)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Status and last line of the errors of one command."""
    status = cli.main(words)
    err = capsys.readouterr().err.splitlines()
    return status, err[-1] if err else ""


def test_restoring_from_a_closed_folder(capsys: pytest.CaptureFixture[str], closed: Path) -> None:
    """There may be something: no all-clear."""
    status, error = run(capsys, "restore", "--state-dir", str(closed))

    assert (1, f"koordlet: {closed}/lib/journal: {_ROOT}") == (status, error)


def test_a_mistake_in_the_configuration_does_not_keep_limits_in_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Putting back is always safe; the last good file, or the built-in values, say where."""
    config = tmp_path / "c.yaml"
    config.write_text("apiVersion: koordlet.io/v1\nkind: Config\npolices: {}\n")
    state = tmp_path / "state"

    status = cli.main(["restore", "--config", str(config), "--state-dir", str(state)])

    err = capsys.readouterr().err
    assert status == 0
    assert f'{config}:3:1: polices: unknown key "polices"' in err
    assert "koordlet: going on without the configuration file\n" in err
    assert f"no journal {state}/lib/journal" in err
    assert cli.main(["restore", "--config", f"{config}l", "--state-dir", str(state)]) == 2
    assert "no such file" in capsys.readouterr().err
    endless = str(tmp_path / ("a" * 300))
    assert cli.main(["restore", "--config", endless, "--state-dir", str(state)]) == 2
    assert endless in capsys.readouterr().err


def test_a_mistake_in_the_environment_leaves_the_file_in_force(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file says where the journal is, and nothing is wrong with it."""
    config, state = tmp_path / "c.yaml", tmp_path / "state"
    config.write_text(
        f"apiVersion: koordlet.io/v1\nkind: Config\nstate: {{dir: {json.dumps(str(state))}}}\n"
    )
    monkeypatch.setenv("KOORDLET_MOED", "observe")

    assert cli.main(["restore", "--config", str(config)]) == 0

    wrong, without, where = capsys.readouterr().err.splitlines()
    assert wrong.startswith("koordlet: KOORDLET_MOED: ")
    assert without == "koordlet: going on without the variables KOORDLET_*"
    assert f"no journal {state}/lib/journal" in where


def test_each_problem_of_a_configuration_has_its_line_and_what_is_in_force_follows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """At a start too, as ``koordlet config`` says them; here another agent ends it."""
    config, state = tmp_path / "c.yaml", tmp_path / "state"
    config.write_text("apiVersion: koordlet.io/v1\nkind: Config\nmode: enforc\npolices: {}\n")
    held = lock.Lock(paths.choose({}, root=True, state_dir=str(state)).lock)
    held.acquire()

    status = cli.main(["run", "--observe", "--config", str(config), "--state-dir", str(state)])
    held.release()

    lines = capsys.readouterr().err.splitlines()
    assert (status, lines[0]) == (1, f"koordlet: {config}: 2 problems:")
    assert [line.partition(": ")[0] for line in lines[1:3]] == [
        f"  {config}:3:7",
        f"  {config}:4:1",
    ]
    assert lines[3].startswith("koordlet: in force: the built-in values, observing only")


def test_whoever_forgot_sudo_hears_of_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's agent keeps its journal elsewhere than a user's would: that one counts as well."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "journal").touch()

    def choose(_env: object, *, root: bool, **_: object) -> paths.Paths:
        folder = tmp_path / ("roots" if root else "users")
        return paths.Paths(run=folder, lib=folder, log=folder)

    monkeypatch.setattr(paths, "choose", choose)
    monkeypatch.setattr(os, "geteuid", lambda: _NOBODY)
    status, error = run(capsys, "restore")

    assert status == 1
    assert f"koordlet: {tmp_path}/roots/journal: {_ROOT}" == error


def test_restoring_where_a_folder_is_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No agent was there, so there is nothing to do."""
    (tmp_path / "state").touch()

    status, error = run(capsys, "restore", "--state-dir", str(tmp_path / "state"))

    assert status == 0
    assert error.startswith(f"koordlet: no journal {tmp_path}/state/lib/journal: nothing is to be")


def test_a_scheduler_in_a_closed_folder(capsys: pytest.CaptureFixture[str], closed: Path) -> None:
    """The folder has a name in the error, and the option that chooses another."""
    status, error = run(
        capsys, "scheduler", "--standalone", "--http", "127.0.0.1:0", "--state-dir", str(closed)
    )

    assert status == 1
    assert (
        f"koordlet: {closed}/lib: cannot be used: Permission denied"
        " (name a writable directory with --state-dir)"
    ) == error


def test_checkpoints_in_a_closed_folder(capsys: pytest.CaptureFixture[str], closed: Path) -> None:
    """What an agent holds cannot be known: that is no empty checkpoint."""
    status, error = run(capsys, "plan", "--defragment", "--state-dir", str(closed))

    assert status == 1
    assert error.startswith(f"koordlet: {closed}/lib/checkpoint: cannot be read: Permission denied")


@pytest.mark.parametrize("words", ["topology --root", "replay"])
def test_a_recording_in_a_closed_folder(
    capsys: pytest.CaptureFixture[str], closed: Path, words: str
) -> None:
    """It may well be there."""
    status, error = run(capsys, *words.split(), str(closed / "node7.tar.gz"))

    assert status == 2
    assert error.startswith(f"koordlet: {closed}/node7.tar.gz: cannot be read: Permission denied (")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("plan --now 5", "--now: this machine has its own clock (name a recording with --root)"),
        (
            "topology --owners",
            "--owners: only a picture has colours (add -o svg, or koordlet plan)",
        ),
        ("topology --pods x", "--pods: nobody was asked for owners (add --owners -o svg)"),
        (
            "topology -o svg --address x",
            "--address: nobody was asked for owners (add --owners -o svg)",
        ),
    ],
)
def test_an_option_without_effect(
    capsys: pytest.CaptureFixture[str], words: str, error: str
) -> None:
    """Whoever gives it expects something of it."""
    assert (2, f"koordlet: {error}") == run(capsys, *words.split())


@pytest.mark.parametrize(
    ("signal", "fix"),
    [
        ("memory.avialable", 'did you mean "memory.available"?'),
        ("zz", "known: allocatableMemory.available, containerfs.available, "),
    ],
)
def test_a_signal_that_there_is_not(
    capsys: pytest.CaptureFixture[str], signal: str, fix: str
) -> None:
    """The option has its name, and so has what was meant."""
    status, error = run(capsys, "config", "--eviction-hard", f"{signal}<5%")

    assert status == 2
    assert error.startswith("koordlet: --eviction-hard: policies.node_pressure.evictionHard")
    assert f"unsupported eviction signal {signal} ({fix}" in error


def test_no_cluster_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer of nobody is not that of a cluster that says nothing."""
    assert run(capsys, "config", "--cluster") == (
        0,
        "note: nobody was asked: no cluster is configured or found here",
    )


def test_a_line_of_a_manifest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where the text stops making sense."""
    file = tmp_path / "pods.yaml"
    file.write_text("kind: Pod\nmetadata:\n  name: a: b\n")
    status, error = run(capsys, "sim", str(file))

    assert status == 2
    assert f"koordlet: {file}: neither JSON nor YAML: line 3: mapping values" in error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("get nodes", "/run/scheduler.sock: No such file or directory (does `koordlet scheduler`"),
        ("get node", "/run/koordlet.sock: No such file or directory (start koordlet run, or"),
    ],
)
def test_nobody_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, error: str
) -> None:
    """Who was asked, in a few words, and who could be started."""
    status, line = run(capsys, *words.split(), "--state-dir", str(tmp_path))

    assert status == 1
    assert f"koordlet: nobody answers: unix:{tmp_path}{error}" in line


@pytest.mark.parametrize("address", ["http://127.0.0.1:9316", "[::1"])
def test_what_is_no_address_is_answered_with_what_one_is(
    capsys: pytest.CaptureFixture[str], address: str
) -> None:
    """Not with the words of a resolver."""
    status, line = run(capsys, "get", "node", "--address", address)

    assert status == 1
    why = f"{address}: no such host: an address is HOST:PORT or unix:/path"
    assert f"koordlet: nobody answers: {why} (start koordlet run" in line


def test_nothing_in_the_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """No log is not an empty one; a policy that there is not is named."""
    assert cli.main(["audit", "--state-dir", str(tmp_path)]) == 0
    assert "there is no such file" in capsys.readouterr().out
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "audit.jsonl").touch()
    assert cli.main(["audit", "--state-dir", str(tmp_path), "--policy", "adaptve"]) == 0
    assert 'did you mean "adaptive"?' in capsys.readouterr().out
