"""The examples of the client library, from its header and from the page, run against an agent."""

from __future__ import annotations

import re
import runpy
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet import client
from koordlet.rpc import placing, server
from tests.kit import loops, views
from tests.rpc.conftest import Serve
from tests.rpc.test_placing import Desk

PAGE = (Path(__file__).parents[2] / "docs/grpc.md").read_text()
HEADER = client.__doc__ or ""
FOLLOWING, ASKING = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = {
    "header": textwrap.dedent(HEADER.partition("\n\n")[2].partition("\n\nCovers")[0]),
    "page": FOLLOWING,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str, serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands, but for the socket; it follows the agent until the first state is printed."""
    served = serve()
    served.publish(views.view())
    program = EXAMPLES[name].replace("/run/koordlet/koordlet.sock", str(served.path))
    once = re.sub(r"^( +)(print\(state.*)$", r"\1\2\n\1break", program, flags=re.MULTILINE)
    assert once != program

    exec(compile(once, name, "exec"), {})  # noqa: S102 -- the text is the project's own

    *_, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ \d+", last)


@pytest.fixture
def nodes(ram: Path, loop: loops.LoopThread) -> Iterator[Path]:
    """The socket of a scheduler."""
    path = ram / "scheduler.sock"
    serving = server.RpcServer(path, (placing.PlacingService(Desk()),))
    loop.run(serving.start())
    yield path
    loop.run(serving.stop())


@pytest.mark.parametrize(
    ("agent", "scheduler", "lines"),
    [
        ("agent.sock", "scheduler.sock", ["n1", "n1 0 {}"]),
        (
            "nobody.sock",
            "scheduler.sock",
            ["no answer: unix:PATH/nobody.sock: No such file or directory"],
        ),
        (
            "agent.sock",
            "agent.sock",
            ["n1", "refused: unix:PATH/agent.sock: Method not found! (UNIMPLEMENTED)"],
        ),
    ],
)
def test_asking_once_has_an_answer_or_a_reason(
    *, agent: str, scheduler: str, lines: list[str], nodes: Path, serve: Serve,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The second example of the page, with sockets in place of its addresses."""
    folder = nodes.parent
    serve(folder / "agent.sock").publish(views.view())
    program = ASKING.replace('"10.0.0.5:9320", files', f'"unix:{folder}/{agent}"')
    program = program.replace("/run/koordlet/scheduler.sock", f"{folder}/{scheduler}")

    example = folder / "example.py"
    example.write_text(program)
    runpy.run_path(str(example))

    assert capsys.readouterr().out.replace(str(folder), "PATH").splitlines() == lines


def test_it_is_typed() -> None:
    """Checkers of other programs read its annotations."""
    assert (Path(client.__file__).parents[1] / "py.typed").exists()
