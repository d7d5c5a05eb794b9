"""A configuration is validated by a process of its own, or here where there is none."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from koordlet.config import examiner, loader, parcel, reloader, sourced
from koordlet.model import errors
from tests.config.refusing import Write
from tests.kit import deadline

#: What would load pydantic into the agent would show it here.
_LOAD = """
import os, sys
from koordlet.config import examiner
found = examiner.load(sys.argv[1], {}, {})
from koordlet.agent import policy_settings
policy_settings.settings(found.config), policy_settings.workloads(found.config)
assert len(os.listdir("/proc/self/task")) == 1
print(found.config.mode, *(name for name in sys.modules if name.startswith("pydantic")))
"""

_GIVEN_UP = """
import os, signal, sys
signal.signal(signal.SIGCHLD, getattr(signal, sys.argv[1]))
from koordlet.config import examiner, parcel
question = parcel.Question(text="mode: 7", path="f", env={}, flags={})
assert len(os.listdir("/proc/self/task")) == 1

examiner.apart(question).cancel()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    pass
else:
    raise SystemExit("it is still there")
late = examiner.apart(question)
try:
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
except ChildProcessError:
    pass
late.cancel()
"""


def asked(text: str) -> parcel.Question:
    """A question about a text."""
    return parcel.Question(text=text, path="f", env={}, flags={})


def test_the_same_as_here(write: Write) -> None:
    """Environment, flags and file come to the same in both ways."""
    path = write("mode: observe\nnode: {labels: {a: é}}\n")
    env, flags = {"KOORDLET_LOG__LEVEL": "error"}, {"state.dir": sourced.Flag("/x", "--state-dir")}

    effective = examiner.load(path, env, flags)

    assert loader.load(path, env, flags) == effective
    assert (
        effective.config.log.level,
        effective.config.state.dir,
        effective.origin("state.dir"),
    ) == ("error", "/x", "--state-dir")


def test_a_refusal_is_the_same(write: Write) -> None:
    """Also the words of several problems at once."""
    path = write("mode: enfroce\nlog: {level: 7}\n")
    with pytest.raises(errors.ConfigError) as here:
        loader.load(path, {}, {})

    with pytest.raises(errors.ConfigError) as apart:
        examiner.load(path, {}, {})

    assert str(here.value) == str(apart.value)


def test_no_file(tmp_path: Path) -> None:
    """A file that somebody named has to exist."""
    with pytest.raises(errors.ConfigError, match="no such file"):
        examiner.load(str(tmp_path / "none.yaml"), {}, {})


def test_no_models_are_kept(write: Write) -> None:
    """What asks and what puts the answer in terms of policies loads no pydantic."""
    words = [
        sys.executable,
        "-c",
        _LOAD,
        write("workloads: [{name: a, qos: LS, match: {cgroup: a}}]"),
    ]

    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout.split() == ["enforce"]


def test_nobody_hears_of_children(write: Write) -> None:
    """Whoever starts the agent may have SIGCHLD ignored: then no child has a status."""
    path = write("mode: observe\n")
    ignoring = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n{_LOAD}"
    words = [sys.executable, "-c", ignoring, path]

    ran = subprocess.run(words, capture_output=True, check=False, timeout=60)

    assert ran.stdout == b"observe\n", ran.stderr


def test_with_threads(write: Write) -> None:
    """A process that has some is not copied: a fresh one answers, the same."""
    path = write("mode: observe\n")
    there, done = threading.Event(), threading.Event()

    def linger() -> None:
        there.set()
        done.wait(60)

    other = threading.Thread(target=linger)
    other.start()
    try:
        assert there.wait(60)
        assert loader.load(path, {}, {}) == examiner.load(path, {}, {})
    finally:
        done.set()
        other.join()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("raise SystemExit(3)", id="fails"),
        pytest.param("print('{}')", id="says nothing"),
        pytest.param("print('[1]')", id="says something else"),
        pytest.param("print('<html>')", id="is no JSON"),
        pytest.param("import os; os.kill(os.getpid(), 9)", id="is killed"),
        pytest.param("pass", id="says not a word"),
    ],
)
def test_without_an_answer(program: str) -> None:
    """It is validated here, so nothing is lost."""
    text = "apiVersion: koordlet.io/v1\nkind: Config\nmode: observe\n"

    make = functools.partial(examiner.started, program=program)
    effective = examiner.by(make, asked(text)).answer(wait=True)

    assert isinstance(effective, sourced.Effective)
    assert effective.config.mode == "observe"


def test_no_process_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the limit of processes is reached: here as well."""
    monkeypatch.setattr(sys, "executable", "/does/not/exist")

    answer = examiner.by(examiner.started, asked("mode: 7\n")).answer()

    assert isinstance(answer, errors.ConfigError)


def test_nobody_waits(write: Write) -> None:
    """A changed file is heard of by a later look, and until then nothing is in the way."""
    path = write("mode: observe\n")
    watched = reloader.Reloader(path, {}, {}, loader.load(path, {}, {}), examiner.apart)
    assert [watched.poll(), watched.poll()] == [None, None]
    write("mode: enforce\n")
    assert [watched.poll(), watched.poll()] == [None, None]

    effective = deadline.until(watched.poll, "an answer")

    assert isinstance(effective, sourced.Effective)
    assert (effective.config.mode, watched.poll()) == ("enforce", None)


def test_asked_again_meanwhile(write: Write) -> None:
    """Who asks at once (SIGHUP) gets the newest, and the older question is given up."""
    path = write("mode: observe\n")
    watched = reloader.Reloader(path, {}, {}, loader.load(path, {}, {}), examiner.apart)
    assert watched.force() is None
    write("mode: enforce\n")
    assert watched.force() is None

    effective = deadline.until(watched.poll, "an answer")

    assert isinstance(effective, sourced.Effective)
    assert effective.config.mode == "enforce"


@pytest.mark.parametrize("heard", ["SIG_DFL", "SIG_IGN"])
def test_a_question_given_up(heard: str) -> None:
    """A copy that is at work is ended and gone. One that has ended is not sent a signal."""
    words = [sys.executable, "-c", _GIVEN_UP, heard]

    ran = subprocess.run(words, capture_output=True, check=False, timeout=60)

    assert (ran.returncode, ran.stderr) == (0, b"")
