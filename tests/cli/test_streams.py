"""Standard streams that are closed, full, or unable to write what we say."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from koordlet.cli import streams
from tests.kit import deadline

CHECKOUT = Path(__file__).parents[2]
#: Of a shell that closes or redirects first, as people do.
SHELL = 'exec "$0" -m koordlet {words} {how}'


def shell(words: str, how: str, **env: str) -> tuple[int, str, str]:
    """Status and what could still be read of one command."""
    done = subprocess.run(
        ["sh", "-c", SHELL.format(words=words, how=how), sys.executable],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=CHECKOUT,
        timeout=deadline.PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--help", "crds --help", "config", "config -o json"])
def test_a_full_disk_has_its_name(words: str, unbuffered: str) -> None:
    """What did not arrive is an error with a status, not a traceback, at any time."""
    status, _, err = shell(words, ">/dev/full", PYTHONUNBUFFERED=unbuffered)

    assert status == 1
    assert "standard output" in err
    assert "No space left on device" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("how", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_nobodys_error(how: str) -> None:
    """Whoever closed them does not want to know."""
    status, _, err = shell("config", how)

    assert (status, err) == (0, "")


def test_who_asks_a_closed_input_for_a_terminal_has_none() -> None:
    """Python gives such a process no stream at all."""
    status, _, err = shell("top", "<&-")

    assert (status, "Traceback" in err) == (2, False)
    assert "needs a terminal" in err


def test_closed_streams_are_open_before_files() -> None:
    """A file that is opened later does not become standard output."""
    code = (
        "import os; from koordlet.cli import streams; streams.prepare();"
        "number = os.open('/proc/self/stat', os.O_RDONLY);"
        "os._exit(number)"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code],
        check=False,
        cwd=CHECKOUT,
        timeout=deadline.PATIENCE,
    )

    assert done.returncode > 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize(
    ("words", "shown"),
    [("explain --help", "'memory.available<99%'  ? and who would go"), ("top --once", "by class")],
)
def test_a_terminal_without_a_character(words: str, shown: str, encoding: str) -> None:
    """A question mark stands in its place; ``top`` draws its bars with other signs."""
    status, out, err = shell(words, "", PYTHONIOENCODING=encoding)

    assert (status, err) == (0, "")
    assert shown in out


@pytest.mark.parametrize("words", ["--help", "--version", "run --help", "completion bash"])
def test_a_reader_that_has_gone_is_no_error(words: str) -> None:
    """A closed pipe ends a command quietly, with 0, whatever it prints."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "koordlet", *words.split()],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            cwd=CHECKOUT,
            timeout=deadline.PATIENCE,
        )
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("how", ["2>/dev/full", "2>&-"])
def test_nobody_hears_an_error(how: str) -> None:
    """The status says it all the same."""
    assert shell("topology --root /nonexistent", how)[0] == 2


def interrupted_at(moment: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """A command that gets Ctrl-C while the module of that name is imported."""
    code = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name in {list(moment)!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv[1:] = ['config']\n"
        "from koordlet import __main__\n"
        "__main__.main()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        cwd=CHECKOUT,
        timeout=deadline.PATIENCE,
    )


@pytest.mark.parametrize("moment", ["argparse", "pydantic_core._pydantic_core", "datetime"])
def test_interrupted_while_importing(moment: str) -> None:
    """Also where an extension module turns the exception into one of its own."""
    done = interrupted_at([moment])

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    "command", [*streams.SERVICES, "restore --after-stop u", "restore --when-overdue"]
)
def test_a_service_goes_on_beside_a_log_that_nobody_reads(command: str) -> None:
    """The pipe is full before it starts: the first thing that it says would wait for ever."""
    reading, writing = os.pipe()
    os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))

    words = [sys.executable, "-m", "koordlet", *command.split(), "--no-such-option"]
    done = subprocess.run(
        words, stderr=writing, check=False, cwd=CHECKOUT, timeout=deadline.PATIENCE
    )

    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert (done.returncode, set(pipe.read())) == (2, {"x"})


@pytest.mark.parametrize(
    ("words", "after"),
    [
        ("restore --after-wait u", True),
        ("restore --config x --when-overdue", True),
        ("restore --config --after", False),
        ("config --after-stop", False),
        ("restore", False),
        ("", False),
    ],
)
def test_who_restores_for_a_person_waits_for_a_pager(words: str, *, after: bool) -> None:
    """``koordlet restore 2>&1 | less`` is read when its reader likes."""
    assert streams.restores_after(words.split()) is after


def test_a_restore_after_a_service_ends_though_nobody_reads_what_it_did(tmp_path: Path) -> None:
    """Its unit would wait for it."""
    reading, writing = os.pipe()
    os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))

    words = [sys.executable, "-m", "koordlet", "restore", "--when-overdue", "--state-dir"]
    done = subprocess.run(
        [*words, str(tmp_path / "none")], stdout=writing, check=False, cwd=CHECKOUT,
        timeout=deadline.PATIENCE,
    )  # fmt: skip

    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert (done.returncode, set(pipe.read())) == (0, {"x"})


def test_a_service_says_all_to_a_log_that_is_read() -> None:
    """Also more than one write to a pipe takes at once."""
    code = (
        "import sys; from koordlet.cli import streams; streams.prepare(['run']);"
        "sys.stderr.write('y' * 300_000)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    assert len(done.stderr) == 300_000
