"""The command line: statuses, errors for people and programs, help, completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import koordlet
from koordlet import cli
from koordlet.cli import explain
from tests.kit import deadline


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run one command; its status, stdout and stderr."""
    try:
        status = cli.main(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    out, err = capsys.readouterr()
    return status, out, err


#: Clears the screen, begins a line of its own, and is no UTF-8.
_HOSTILE = "x\x1b[2J\nkoordlet: all is well\x9b31m\udcff"


@pytest.mark.parametrize(
    "words",
    [
        [_HOSTILE],
        ["plan", f"--{_HOSTILE}"],
        ["plan", "--now", _HOSTILE],
        ["plan", "--root", _HOSTILE],
        ["plan", "--config", _HOSTILE],
        ["plan", "--pods", _HOSTILE],
        ["config", "--config", "FILE"],
        ["check", "--config", _HOSTILE],
        ["restore", "--config", _HOSTILE],
        ["replay", _HOSTILE],
        ["record", f"{_HOSTILE}/out.tar.gz"],
        ["sim", _HOSTILE],
        ["schedule", "-f", _HOSTILE],
        ["scheduler", "--config", _HOSTILE],
        ["explain", "pod", "a/b", "--root", _HOSTILE],
    ],
    ids=lambda words: " ".join(words[:2]).partition("x\x1b")[0].strip() or "command",
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_no_error_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], form: str
) -> None:
    """Whatever a name holds is written out for people, and is itself for programs."""
    where = tmp_path / _HOSTILE
    if words[-1] == "FILE":
        where.write_text("apiVersion: koordlet.io/v1\nkind: Config\nlog: {level: 5}\nnode: 1\n")
        words = [*words[:-1], str(where)]
    status, out, err = run(capsys, *words, *(["-o", "json"] if form == "json" else []))

    assert (status in (1, 2), out) == (True, "")
    assert [c for c in err if not c.isprintable() and c != "\n"] == []
    assert "\nkoordlet: all is well" not in err
    if err.startswith("{"):
        culprit = json.loads(err)["error"]["culprit"]
        assert _HOSTILE in culprit or culprit in _HOSTILE, "a program gets the name as it is"


def test_garbage_is_looked_for() -> None:
    """Importing goes without the collector; the command that was named has it."""
    code = (
        "import gc, sys; from koordlet import __main__, cli;"
        "sys.argv[1:] = ['completion', 'bash'];"
        "enabled = []; main = cli.main;"
        "note = lambda: enabled.append(gc.isenabled());"
        "cli.main = lambda: (note(), main(), note());"
        "exec('try: __main__.main()\\nexcept SystemExit: print(enabled, file=sys.stderr)')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stderr.strip() == "[False, True]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` prints name and version, and nothing else."""
    assert (0, f"koordlet {koordlet.__version__}\n", "") == run(capsys, "--version")


def test_help_and_version_are_commands_too(capsys: pytest.CaptureFixture[str]) -> None:
    """As people type them; ``help`` of a command is its ``--help``."""
    assert run(capsys, "version")[1].startswith(f"koordlet {koordlet.__version__}\npython 3.")
    assert run(capsys, "help")[1] == run(capsys, "--help")[1]
    assert run(capsys, "help", "explain", "pod")[1] == run(capsys, "explain", "pod", "--help")[1]
    status, _, err = run(capsys, "help", "pln")
    assert (status, 'did you mean "plan"?' in err) == (2, True)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """``--help`` of each command says what it does and shows an example of itself."""
    status, out, err = run(capsys, name, "--help")

    assert (status, err) == (0, "")
    assert "examples:" in out
    assert f"koordlet {name}" in out.partition("examples:")[2]


@pytest.mark.parametrize("words", [("--help",), ("--help", "run")])
def test_the_help_page_lists_every_command(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """The first page names all commands with a line for each, and has examples."""
    status, out, _ = run(capsys, *words)

    assert status == 0
    assert "examples:" in out
    for name, line in cli.COMMANDS.items():
        assert name in out
        assert line.split(",")[0][:40] in " ".join(out.split())


@pytest.mark.parametrize(
    "words",
    [
        *([], ["nonsense"], ["plan", "--nonsense"], ["plan", "-o", "xml"], ["run", "extra"]),
        *(["topology", "--now", text] for text in ("soon", "nan", "inf", "-5", "1e300")),
        *(["plan", "--cgroup-root", text] for text in ("../..", "/a/../../b", "a//b", "a\nb")),
    ],
)
def test_usage_errors_are_2(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """A command line that makes no sense ends with 2 and says so on stderr."""
    status, out, err = run(capsys, *words)

    assert (status, out) == (2, "")
    assert "usage:" in err or "koordlet" in err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "koordlet: no command (koordlet --help lists them)"),
        ("tpo", 'koordlet: tpo: no such command (did you mean "top"?)'),
        ("zzz -o json", "koordlet: zzz: no such command (koordlet --help lists them)"),
        (
            "topology --rot x",
            'koordlet topology: error: unrecognized arguments: --rot x (did you mean "--root"?)',
        ),
        (
            "explain cpu 1 --confg=x",
            (
                "koordlet explain cpu: error: unrecognized arguments: --confg=x"
                ' (did you mean "--config"?)'
            ),
        ),
        (
            "explain pood d/x",
            (
                "koordlet explain: error: argument SUBJECT: invalid choice: 'pood' (did you mean"
                ' "pod"? choose from claim, cpu, eviction, migration, plan, pod, quota, write)'
            ),
        ),
        (
            "completion csh",
            (
                "koordlet completion: error: argument {bash,zsh,fish}: invalid choice: 'csh'"
                ' (did you mean "zsh"? choose from bash, zsh, fish)'
            ),
        ),
        ("run extra", "koordlet run: error: unrecognized arguments: extra"),
        (
            "get",
            (
                "koordlet get: error: the following arguments are required:"
                " {avoid,budgets,claims,descheduler,gangs,migrations,node,nodes,plans,quotas,"
                "reservations,workloads}"
            ),
        ),
        (
            "top --every x",
            "koordlet top: error: argument --every: from 0.5 to 3600 seconds, not 'x'",
        ),
        ("sim --nodes x", "koordlet sim: error: argument --nodes: from 0 to 1000000, not 'x'"),
    ],
)
def test_the_word_that_was_meant(
    capsys: pytest.CaptureFixture[str], words: str, error: str
) -> None:
    """A typing error is answered with the nearest word, by the command that was named."""
    status, out, err = run(capsys, *words.split())

    assert (status, out) == (2, "")
    assert error == err.splitlines()[-1]
    usage = [line for line in err.splitlines() if line.startswith("usage:")]
    assert all(line.startswith(f"usage: {error.partition(': error')[0]} ") for line in usage)


def test_errors_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An error names culprit and fix in one line on stderr; stdout stays empty."""
    missing = str(tmp_path / "gone")
    status, out, err = run(capsys, "plan", "--root", missing)

    assert (status, out) == (2, "")
    assert err.startswith(f"koordlet: {missing}: does not exist (")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("policies.cpu_supress.mode", 'did you mean "policies.cpu_suppress.mode"?'),
        ("a.b", "see 'koordlet config'"),
    ],
)
def test_an_unknown_key_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, key: str, fix: str
) -> None:
    """The key that was meant, or where all are listed; not hundreds of keys in one line."""
    status, out, err = run(capsys, "plan", "--root", str(tmp_path), "--set", f"{key}=1")

    assert (status, out) == (2, "")
    assert f"koordlet: --set {key}=1: no key {key} in the configuration ({fix})\n" == err


def test_errors_for_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With ``-o json`` the error is one document with code, message, culprit and fix."""
    missing = str(tmp_path / "gone")
    status, out, err = run(capsys, "plan", "-o", "json", "--root", missing)
    document = json.loads(err)

    assert (status, out) == (2, "")
    assert list(document) == ["version", "error"]
    assert set(document["error"]) == {"code", "message", "culprit", "fix"}
    assert ("v1", "config", missing) == (
        document["version"],
        document["error"]["code"],
        document["error"]["culprit"],
    )


@pytest.mark.parametrize("words", [["run", "--observe"], ["restore"]])
def test_a_recorded_machine_is_never_changed(tmp_path: Path, words: list[str]) -> None:
    """With ``KOORDLET_ROOT`` set, what changes machines refuses instead of taking the live one."""
    (tmp_path / "root" / "sys").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "koordlet", *words, "--state-dir", str(tmp_path / "state")],
        env={**os.environ, "KOORDLET_ROOT": str(tmp_path / "root")},
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        timeout=deadline.PATIENCE,
    )

    assert done.returncode == 2
    assert "unset KOORDLET_ROOT" in done.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    """The script for each shell names all commands."""
    status, out, _ = run(capsys, "completion", shell)

    assert status == 0
    assert all(name in out for name in cli.COMMANDS)


def test_completion_is_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script for bash is one that bash accepts."""
    script = tmp_path / "completion"
    script.write_text(run(capsys, "completion", "bash")[1])

    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def _words(example: str) -> list[list[str]]:
    """What an example runs of ours: before its comment, without what other programs do."""
    line = re.split(r"\s{2,}", example.strip())[0]
    steps = [shlex.split(step.partition(">")[0]) for step in re.split(r"[;|]", line)]
    return [words[1:] for words in steps if words[:1] == ["koordlet"]]


@pytest.mark.parametrize(
    "name", [*cli.COMMANDS, *(f"explain {subject}" for subject in explain.SUBJECTS)]
)
def test_every_example_can_be_typed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command's page has examples, and each of them is a command line that is understood."""
    with pytest.raises(SystemExit):
        cli.main([*name.split(), "--help"])
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    runs = [words for example in examples for words in _words(example)]

    assert name.split(maxsplit=1)[0] in {words[0] for words in runs}
    for words in runs:
        assert cli.parser(words[0]).parse_args(words).command == words[0]
