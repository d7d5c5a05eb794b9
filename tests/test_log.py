"""The log: one valid line for each fact, nothing raised, nothing repeated, nothing secret."""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from koordlet import log
from tests.kit import clocks


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    """Leave the process's log as it was."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """The JSON lines written so far."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class TestOutput:
    """What a line looks like."""

    def test_json(self) -> None:
        """Away from a terminal a line is JSON: when, how severe, what, then the fields."""
        log.configure(stream=(stream := io.StringIO()))

        log.get(node="n1").info("shared_pools.applied", writes=3)

        (line,) = lines(stream)
        assert list(line) == ["timestamp", "level", "event", "node", "writes"]
        assert (line["level"], line["event"], line["writes"]) == ("info", "shared_pools.applied", 3)

    def test_utc(self) -> None:
        """Timestamps are UTC with milliseconds, and say so."""
        log.configure(stream=(stream := io.StringIO()))

        log.get().info("a.b")

        assert lines(stream)[0]["timestamp"].endswith("Z")
        assert len(lines(stream)[0]["timestamp"]) == 24

    @pytest.mark.parametrize(
        ("stream", "form", "is_json"),
        [
            (io.StringIO(), "auto", True),
            (Terminal(), "auto", False),
            (Terminal(), "json", True),
            (io.StringIO(), "console", False),
        ],
    )
    def test_format(self, stream: io.StringIO, form: log.Format, *, is_json: bool) -> None:
        """The format follows the stream unless it is set."""
        log.configure("info", form, stream=stream)

        log.get().info("a.b")

        assert is_json is stream.getvalue().startswith("{")

    def test_console(self) -> None:
        """On a terminal a line is readable, and a file name cannot steer the terminal."""
        log.configure(stream=(stream := Terminal()))

        log.get().warning("a.b", path="/x\x1b[2J y", n=1, cpus=[1, 2])

        line = stream.getvalue()
        assert 'path="/x\\x1b[2J y" n=1 cpus=[1, 2]' in line
        assert line.removesuffix("\n").isprintable()

    @pytest.mark.parametrize("form", ["json", "console"])
    def test_exception(self, form: log.Format) -> None:
        """An exception is logged with its traceback and without the values of variables."""
        log.configure("info", form, stream=(stream := io.StringIO()))
        hidden = "hunter2"
        try:
            int(hidden[:0])
        except ValueError:
            log.get().exception("loop.failed")

        assert "ValueError: invalid literal" in stream.getvalue()
        assert "hunter2" not in stream.getvalue().replace('hidden = "hunter2"', "")

    def test_level(self) -> None:
        """What is less severe than the level is not logged; a new level holds for old loggers."""
        log.configure("warning", stream=(stream := io.StringIO()))
        logger = log.get()

        logger.info("a.info")
        logger.warning("a.warning")
        log.configure("debug", stream=stream)
        logger.debug("a.debug")

        assert [line["event"] for line in lines(stream)] == ["a.warning", "a.debug"]

    @given(
        st.dictionaries(
            st.text("abcxyz_", min_size=1).map(lambda key: f"f{key}"),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(st.text(max_size=5), inner, max_size=3)
                ),
                max_leaves=6,
            ),
            max_size=3,
        )
    )
    def test_any_value(self, fields: dict[str, Any]) -> None:
        """Whatever the fields hold, a line is one line of standard JSON."""
        log.configure(stream=(stream := io.StringIO()))

        log.get().info("a.b", **fields)

        (text,) = stream.getvalue().splitlines()
        json.loads(text, parse_constant=pytest.fail)

    def test_broken_value(self) -> None:
        """A value that cannot be shown costs itself, not the line."""

        class Broken:
            def __str__(self) -> str:
                raise RuntimeError

        log.configure(stream=(stream := io.StringIO()))

        log.get().info("a.b", value=Broken(), deep={"a": [[[[[[1]]]]]]}, long="x" * 10_000)

        (line,) = lines(stream)
        assert line["value"] == "<Broken>"
        assert len(line["long"]) == log.MAX_VALUE + 1


class TestFailures:
    """Nothing is raised."""

    def test_broken_pipe(self) -> None:
        """A closed pipe costs the lines, and they are counted."""
        reader, writer = os.pipe()
        os.close(reader)
        stream = os.fdopen(writer, "w", buffering=1)
        sink = log.configure(stream=stream)

        log.get().info("a.b")
        log.get().info("a.b")

        assert sink.lost == 2
        with pytest.raises(BrokenPipeError):
            stream.close()

    def test_full_disk(self) -> None:
        """A full disk costs the lines."""
        stream = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
        sink = log.configure(stream=stream)

        log.get().info("a.b")

        assert sink.lost == 1
        with pytest.raises(OSError, match="No space left"):
            stream.close()

    def test_a_reader_that_hangs_costs_lines_and_not_the_agent(self) -> None:
        """A pipe that nobody reads is full some day; once it is read again, lines are whole."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            sink = log.configure(form="json", stream=stream)
            size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
            written = 0
            while not sink.lost:
                log.get().info("a.b", detail="x" * 1_500)
                written += 1
            for _ in range(1_000):
                log.get().info("a.b")
            assert sink.lost == 1_001
            first = os.read(reading, 2 * size)
            log.get().info("a.c")
            last = os.read(reading, 2 * size)
        os.close(reading)

        *whole, end = (first + last).splitlines()
        assert json.loads(end)["event"] == "a.c"
        assert [json.loads(line)["event"] for line in whole[: written - 1]] == ["a.b"] * (
            written - 1
        )

    def test_two_threads_at_a_reader_that_hangs(self) -> None:
        """Each loses its line, and neither an answer of the other's."""
        reading, writing = os.pipe()
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            sink = log.configure(stream=stream)
            os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
            with futures.ThreadPoolExecutor(2) as threads:
                assert list(threads.map(sink.write_line, ["a", "b"])) == [None, None]
        os.close(reading)

        assert sink.lost == 2

    def test_a_character_that_the_encoding_lacks_late_in_a_long_line(self) -> None:
        """What was written of it before ends there, and the line follows as a whole."""
        binary = io.BytesIO()
        sink = log.Sink(io.TextIOWrapper(binary, encoding="ascii"))
        sink.write_line(f"{'x' * 1_500}\xe9")

        assert binary.getvalue().decode().splitlines()[1:] == [f"{'x' * 1_500}\\xe9"]

    def test_closed(self) -> None:
        """A closed stream costs the lines."""
        stream = io.StringIO()
        stream.close()
        sink = log.configure("info", "auto", stream=stream)

        log.get().info("a.b")

        assert sink.lost == 1

    @pytest.mark.parametrize("form", ["json", "console"])
    def test_encoding(self, form: log.Format) -> None:
        """A stream of another encoding and half a character still get a line."""
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="ascii")
        sink = log.configure("info", form, stream=stream)

        log.get().info("a.b", path="/é\udc80")

        assert (sink.lost, raw.getvalue().count(b"\n")) == (0, 1)
        if form == "json":
            assert json.loads(raw.getvalue())["path"] == "/é\udc80"


class TestSecrets:
    """Nothing secret is logged."""

    @pytest.mark.parametrize(
        "key", ["token", "bearer_token", "password", "Authorization", "tls_private_key", "api_key"]
    )
    def test_masked(self, key: str) -> None:
        """A field whose name says so is masked, also in a map below."""
        log.configure(stream=(stream := io.StringIO()))

        log.get().info("a.b", **{key: "hunter2"}, below={"x": [{key: "hunter2"}]})

        assert "hunter2" not in stream.getvalue()
        assert log.MASK in stream.getvalue()

    @pytest.mark.parametrize("key", ["path", "tokens_left", "keyboard", "cpu"])
    def test_others(self, key: str) -> None:
        """Other fields are left alone."""
        log.configure(stream=(stream := io.StringIO()))

        log.get().info("a.b", **{key: "seen"})

        assert lines(stream)[0][key] == "seen"


class TestRepeats:
    """A repeated condition is said once, then with its count at growing intervals."""

    def test_powers_of_ten(self) -> None:
        """It is said the 1st, the 10th, the 100th time and so on."""
        repeats = log.Repeats(clocks.Clock())

        counts = [repeats.count("x") for _ in range(1000)]

        assert [count for count in counts if count is not None] == [1, 10, 100, 1000]

    def test_every(self) -> None:
        """While it goes on it is said no later than after ten minutes, with its count."""
        repeats = log.Repeats(clock := clocks.Clock())
        counts = []
        for clock.now in range(0, 1802, 300):
            counts.append(repeats.count("x"))

        assert counts == [1, None, 3, None, 5, None, 7]

    def test_keys_are_apart(self) -> None:
        """Each condition has its own count."""
        repeats = log.Repeats(clocks.Clock())

        assert [repeats.count(key) for key in ("x", "y", "x")] == [1, 1, None]

    def test_over(self) -> None:
        """When a condition is over its count is told, and it is new the next time."""
        repeats = log.Repeats(clocks.Clock())
        for _ in range(5):
            repeats.count("x")

        assert (repeats.over("x"), repeats.over("x"), repeats.count("x")) == (5, 0, 1)

    def test_forgotten(self) -> None:
        """After an hour of silence a condition is new."""
        repeats = log.Repeats(clock := clocks.Clock())
        repeats.count("x")
        clock.now = 3601

        assert repeats.count("x") == 1

    def test_bounded(self) -> None:
        """A flood of different conditions is counted as one, in bounded memory."""
        repeats = log.Repeats(clocks.Clock(), limit=10)

        counts = [count for n in range(10_000) if (count := repeats.count(n)) is not None]

        # 10 that are known, then the shared one: 1, 10, 100, 1 000.
        assert len(counts) == 10 + 4

    def test_bounded_and_forgotten(self) -> None:
        """Old conditions make room for new ones."""
        repeats = log.Repeats(clock := clocks.Clock(), limit=2)
        counts = [repeats.count("a"), repeats.count("b")]
        clock.now = 3601

        assert [*counts, repeats.count("c"), repeats.count("d")] == [1, 1, 1, 1]

    def test_missing_file(self) -> None:
        """A file that the kernel lacks, met ten times a second for an hour, costs few lines."""
        log.configure(stream=(stream := io.StringIO()))
        repeats = log.Repeats(clock := clocks.Clock())
        warn = log.get().warning
        for tick in range(3_600 * 10):
            clock.now = tick / 10
            repeats.say(warn, "host.file_missing", "cpu.idle", path="cpu.idle")

        logged = lines(stream)
        assert logged[0]["times"] == 1
        assert logged[0]["path"] == "cpu.idle"
        assert len(logged) < 15

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 700))))
    def test_nothing_is_lost(self, steps: list[tuple[str, int]]) -> None:
        """The count that is said is how often it was seen, and the first time is always said."""
        repeats = log.Repeats(clock := clocks.Clock(), forget=10**9)
        seen = dict.fromkeys("abc", 0)
        for key, wait in steps:
            clock.now += wait
            seen[key] += 1

            assert repeats.count(key) in ({1} if seen[key] == 1 else {None, seen[key]})
