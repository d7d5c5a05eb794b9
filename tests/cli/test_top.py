"""``koordlet top``: once for programs and people, from an agent or without one; its keys."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
import threading
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import node_source, top, top_screen, top_terminal
from koordlet.report import documents, node_json
from tests.kit import busy_views, large_machines, machines, views


@contextlib.contextmanager
def answering(body: bytes, status: int = 200) -> Iterator[str]:
    """Somebody who gives this answer to everything; the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def encode(document: dict[str, object]) -> bytes:
    """Encode a document as an agent sends it."""
    return json.dumps(document, default=str).encode()


def test_the_agents_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With an agent, ``--once -o json`` is what the agent says, and nothing else."""
    sent = node_json.document(busy_views.busy_view(), "1.2.3")
    with answering(encode(sent)) as address:
        assert cli.main(["top", "--once", "-o", "json", "--address", address]) == 0
    document = json.loads(capsys.readouterr().out)

    assert json.loads(encode(sent)) == document
    assert next(iter(document)) == "version"
    assert document["workloads"][0]["usage"]["cpuCores"] == 1.5


def test_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    """Without ``-o json`` it is the screen, once, and nothing about keys."""
    sent = encode(node_json.document(views.view(views.pods(40)), "1"))
    with answering(sent) as address:
        assert cli.main(["top", "--once", "--address", address]) == 0

    screen = capsys.readouterr().out
    assert screen.count("/pod-000") == 40
    assert "quit" not in screen


def test_a_recorded_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A root is looked at without asking anybody, and what it lacks is null."""
    machines.to_directory(large_machines.full(8), tmp_path)
    assert cli.main(["top", "--once", "-o", "json", "--root", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)

    assert document["mode"] == "observe"
    assert document["usage"]["cpuCores"] is None


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 200), (b"<html>", 200), (b"[]", 200), (b"{}", 200), (b'{"version":"v1"}', 503)],
)
def test_somebody_else_answers(
    body: bytes, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who is no agent is named, with exit status 1."""
    with answering(body, status) as address:
        assert cli.main(["top", "--once", "-o", "json", "--address", address]) == 1
    error = json.loads(capsys.readouterr().err)["error"]

    assert address == error["culprit"]
    assert "no agent answers" in error["message"]


@pytest.mark.parametrize("words", [["-o", "json"], []])
def test_misuse(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Live needs a terminal, and a document needs ``--once``."""
    assert cli.main(["top", *words]) == 2
    assert "--once" in capsys.readouterr().err


def press(keys: str, show: top_screen.Show | None = None) -> top_screen.Show:
    """Press keys, none of which quits; what is shown then."""
    now = show or top_screen.Show()
    for key in top_terminal.split(keys.encode()):
        pressed = top.pressed(now, key)
        assert pressed is not None
        now = pressed
    return now


def test_keys() -> None:
    """Sorting, moving, help, pause, quitting; other keys do nothing."""
    assert top.pressed(top_screen.Show(), "q") is None
    assert press("m").sort == "m"
    assert press("jj\x1b[A").cursor == 1
    assert press("kk").cursor == 0
    assert press("h").help
    assert not press("h?").help
    assert press(" ").paused
    assert top_screen.Show() == press("xyz\x01")


def test_keys_of_several_characters() -> None:
    """Each is one key: it moves, or does nothing; none is Escape and letters."""
    kept = press("/be\r")
    assert press("jj\x1bOA").cursor == 1
    assert press("\x1b[6~k").cursor == 9
    assert press("j\x1b[5~").cursor == 0
    assert kept == press("\x1b[H\x1b[3~\x1bOP\x1b[1;5C", kept)
    assert press("\x1bm", kept).sort == "m"


def test_the_wheel_moves_and_tab_goes_to_the_cpus() -> None:
    """Three rows a notch; arrows choose a CPU there; Tab comes back."""
    assert press("\x1b[<65;10;5M").cursor == 3
    assert press("\x1b[<65;1;5M\x1b[<64;1;5M").cursor == 0
    chosen = press("\t\x1b[C\x1b[C\x1b[D")
    assert (chosen.on_cpus, chosen.cpu, chosen.cursor) == (True, 1, 0)
    assert not press("\t", chosen).on_cpus


def test_a_click_chooses_and_once_more_explains() -> None:
    """On a head it sorts; on a page it closes that; beside everything it does nothing."""
    show = top_screen.Show()
    key, chosen = top.clicked(show, {"row": 2})
    assert (key, chosen.cursor, chosen.on_cpus) == ("", 2, False)
    assert top.clicked(chosen, {"row": 2}) == ("\r", chosen)
    key, chosen = top.clicked(chosen, {"cpu": 0})
    assert (key, chosen.cpu, chosen.cursor, chosen.on_cpus) == ("", 0, 2, True)
    assert top.clicked(chosen, {"cpu": 0}) == ("\r", chosen)
    assert top.clicked(show, {"sort": "m"}) == ("m", show)
    assert top.clicked(show, {}) == ("", show)
    for page in (dataclasses.replace(show, detail=("why",)), press("h")):
        assert top.clicked(page, {"row": 2}) == ("\x1b", page)
    typing = press("/q")
    assert top.clicked(typing, {"sort": "m"}) == ("\r", typing)


def test_escape_closes_one_thing_at_a_time() -> None:
    """First the page, then the filter."""
    opened = dataclasses.replace(press("/be\r"), detail=("why",))
    closed = press("\x1b", opened)
    assert (closed.detail, closed.filter) == ((), "be")
    assert press("\x1b", closed).filter == ""


def test_typing_a_filter() -> None:
    """While it is typed, keys are text; Enter keeps it, Escape clears it."""
    typing = press("/qmc\x7f")
    assert (typing.filter, typing.typing) == ("qm", True)
    done = press("\n", typing)
    assert (done.filter, done.typing) == ("qm", False)
    assert press("\x1b", typing).filter == ""
    assert press("\x1b", done).filter == ""


class FewerSource:
    """An agent whose documents about CPUs lack some, and that knows one pod."""

    def cpus(self) -> documents.Document:
        return {"cpus": [{"cpu": 0, "owner": "pool"}]}

    def pod(self, key: str) -> documents.Document:
        return {"namespace": "d", "name": key, "qos": "LS"}


@pytest.mark.parametrize("on_cpus", [True, False])
@pytest.mark.parametrize("online", ["", "0", "0-1"])
@pytest.mark.parametrize("workloads", [[], [{"namespace": "d", "name": "web"}]])
def test_whatever_there_is_enter_explains_it_or_does_nothing(
    online: str, workloads: list[dict[str, str]], *, on_cpus: bool
) -> None:
    """Before the first document, beyond the last row, of a CPU that the agent does not know."""
    show = top_screen.Show(on_cpus=on_cpus, cursor=10, cpu=10)
    source = typing.cast("node_source.Source", FewerSource())
    document: documents.Document = {"cpus": {"online": online}, "workloads": workloads}
    lines = list(top.explained(source, document if online or workloads else {}, show))

    assert bool(lines) is (online == "0" if on_cpus else bool(workloads))


def test_a_terminal_that_is_gone() -> None:
    """Nothing to read any more is the end."""
    assert [top.pressed(top_screen.Show(), key) for key in top_terminal.split(b"")] == [None]
