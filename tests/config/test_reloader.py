"""A changed file is taken when it is valid and has held still; a bad one keeps the old one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from koordlet.config import examiner, loader, parcel, reloader, sourced
from koordlet.model import errors
from tests.config.refusing import Write


def watch(path: str) -> reloader.Reloader:
    """A reloader that has looked at the file as it is."""
    reloading = reloader.Reloader(path, {}, {}, loader.load(path, {}, {}))
    assert [reloading.poll() for _ in range(3)] == [None, None, None]
    return reloading


def test_unchanged(write: Write) -> None:
    """An unchanged file is never read again."""
    watched = watch(path := write("mode: observe\n"))
    Path(path).chmod(0o600)

    assert [watched.poll() for _ in range(4)] == [None] * 4


def test_changed(write: Write) -> None:
    """A valid change is returned once, by the poll after the one that noticed it."""
    watched = watch(write("mode: observe\n"))
    write("mode: enforce\nlog: {level: error}\n")

    noticed, result, after = watched.poll(), watched.poll(), watched.poll()

    assert (noticed, after) == (None, None)
    assert isinstance(result, sourced.Effective)
    assert (result.config.mode, result.config.log.level) == ("enforce", "error")
    assert result is watched.effective


def test_half_written(write: Write) -> None:
    """A file that is still being written is not read."""
    watched = watch(write("mode: observe\n"))
    results = []
    for length in range(1, 5):
        write("mode: enforce\n" + "# more\n" * length)
        results.append(watched.poll())

    assert results == [None] * 4
    assert isinstance(watched.poll(), sourced.Effective)


def test_replaced(write: Write, tmp_path: Path) -> None:
    """A file that is replaced by renaming is noticed, even with size and time kept."""
    path = write("mode: observe\n")
    watched = watch(path)
    new = tmp_path / "new"
    new.write_text(Path(path).read_text().replace("observe", "enforce"))
    before = Path(path).stat()
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(path)

    watched.poll()
    result = watched.poll()

    assert isinstance(result, sourced.Effective)
    assert result.config.mode == "enforce"


def test_changed_before_the_first_poll(write: Write) -> None:
    """A change between loading and the first poll is not lost."""
    path = write("mode: observe\n")
    watched = reloader.Reloader(path, {}, {}, loader.load(path, {}, {}))
    write("mode: enforce\n")

    results = [watched.poll() for _ in range(3)]

    assert sum(isinstance(result, sourced.Effective) for result in results) == 1


def test_bad_once(write: Write) -> None:
    """A bad file is reported once for its content, and the old configuration stays."""
    watched = watch(write("mode: observe\n"))
    path = write("mode: bogus\n")

    results = [watched.poll() for _ in range(5)]
    os.utime(path)
    results += [watched.poll() for _ in range(3)]

    reports = [result for result in results if result is not None]
    assert len(reports) == 1
    assert isinstance(reports[0], errors.ConfigError)
    assert f"{path}:3:7: mode" == reports[0].culprit
    assert ("observe", reports[0]) == (watched.effective.config.mode, watched.error)


def test_bad_then_other_bad(write: Write) -> None:
    """Another bad content is reported again."""
    watched = watch(write("mode: observe\n"))
    results = []
    for body in ("mode: bogus\n", "mode: other\n"):
        write(body)
        results += [watched.poll(), watched.poll()]

    assert [isinstance(result, errors.ConfigError) for result in results] == [
        False,
        True,
        False,
        True,
    ]


def test_mended(write: Write) -> None:
    """When the old content is back there is nothing to apply, and the error is gone."""
    watched = watch(write("mode: observe\n"))
    write("mode: bogus\n")
    watched.poll(), watched.poll()
    write("mode: observe\n")

    assert [watched.poll(), watched.poll()] == [None, None]
    assert watched.error is None


@pytest.mark.parametrize("spoil", [lambda p: p.unlink(), lambda p: p.write_text("# nothing\n")])
def test_vanished_or_empty(write: Write, spoil: Callable[[Path], object]) -> None:
    """A file that vanished or became empty keeps the old configuration."""
    path = write("mode: observe\n")
    watched = watch(path)
    spoil(Path(path))

    results = [watched.poll() for _ in range(4)]

    assert sum(isinstance(result, errors.ConfigError) for result in results) == 1
    assert watched.effective.config.mode == "observe"
    assert "the last content stays in force" in str(watched.error)


def test_became_a_directory(write: Write) -> None:
    """Trouble with reading the file is reported once, too."""
    path = Path(write("mode: observe\n"))
    watched = watch(str(path))
    path.unlink()
    path.mkdir()

    results = [watched.poll() for _ in range(3)]
    (path / "x").touch()
    results += [watched.poll() for _ in range(3)]

    assert sum(isinstance(result, errors.ConfigError) for result in results) == 1


def test_empty_from_the_start(tmp_path: Path) -> None:
    """A file that was empty when the agent started is no trouble, and may be filled later."""
    path = tmp_path / "config.yaml"
    path.touch()
    watched = watch(str(path))
    path.write_text("apiVersion: koordlet.io/v1\nkind: Config\nmode: observe\n")
    watched.poll()

    assert isinstance(watched.poll(), sourced.Effective)


def test_appears(tmp_path: Path) -> None:
    """A file that was not there at the start is taken when it appears."""
    path = tmp_path / "config.yaml"
    watched = reloader.Reloader(str(path), {}, {}, loader.load(None, {}, {}))
    assert [watched.poll(), watched.poll()] == [None, None]
    path.write_text("apiVersion: koordlet.io/v1\nkind: Config\nmode: observe\n")
    watched.poll()

    result = watched.poll()

    assert isinstance(result, sourced.Effective)
    assert str(path) == result.path


def test_sources_stay(write: Write) -> None:
    """Variables and flags keep their precedence over a changed file."""
    path = write("")
    env, flags = {"KOORDLET_LOG__LEVEL": "error"}, {"mode": "observe"}
    watched = reloader.Reloader(path, env, flags, loader.load(path, env, flags))
    write("mode: enforce\nlog: {level: debug, format: json}\n")
    watched.poll()
    watched.poll()

    config = watched.effective.config
    assert (config.mode, config.log.level, config.log.format) == ("observe", "error", "json")


def test_force(write: Write) -> None:
    """A forced reload reads at once, and answers even when nothing changed."""
    watched = watch(write("mode: observe\n"))

    assert watched.effective == watched.force()

    write("mode: enforce\n")
    result = watched.force()

    assert isinstance(result, sourced.Effective)
    assert (result.config.mode, watched.poll()) == ("enforce", None)


def test_force_bad(write: Write) -> None:
    """A forced reload of a bad file answers with the error each time, and keeps the old one."""
    watched = watch(write("mode: observe\n"))
    write("mode: bogus\n")

    assert isinstance(watched.force(), errors.ConfigError)
    assert isinstance(watched.force(), errors.ConfigError)
    assert [watched.poll(), watched.poll()] == [None, None]
    assert watched.effective.config.mode == "observe"


class Broken:
    """As where our own files were replaced while we run: nothing can be loaded any more."""

    def answer(self, *, wait: bool = False) -> parcel.Answer | None:
        """Fails, each time."""
        raise ImportError(f"no module, {wait=}")

    def cancel(self) -> None:
        """Fails as well."""
        raise ProcessLookupError


def test_failed(write: Write) -> None:
    """What fails in an unforeseen way fails once for each change, and the next one is heard."""
    path = write("mode: observe\n")
    made: list[examiner.Examination] = [Broken()]

    def ask(question: parcel.Question) -> examiner.Examination:
        return made.pop() if made else examiner.here(question)

    watched = reloader.Reloader(path, {}, {}, loader.load(path, {}, {}), ask)
    write("mode: 7\n")
    assert watched.poll() is None
    with pytest.raises(ImportError):
        watched.poll()
    assert [watched.poll() for _ in range(3)] == [None] * 3

    write("mode: enforce\n")
    effective = watched.force()

    assert isinstance(effective, sourced.Effective)
    assert effective.config.mode == "enforce"


def test_cost(write: Write) -> None:
    """A poll of an unchanged file opens nothing."""
    watched = watch(path := write("mode: observe\n"))
    opened: list[object] = []
    listening = True

    def hook(event: str, args: tuple[object, ...]) -> None:
        # A hook cannot be taken away again.
        if listening and event == "open":
            opened.append(args[0])

    sys.addaudithook(hook)
    watched.poll()
    quiet = list(opened)
    watched.force()
    listening = False

    assert ([], [path]) == (quiet, opened)
