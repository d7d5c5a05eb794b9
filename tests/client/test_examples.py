"""The examples of the client library, from its header and from the page, run against an agent."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from koordlet import client
from tests.kit import views
from tests.rpc.conftest import Serve

PAGE = (Path(__file__).parents[2] / "docs/grpc.md").read_text()
HEADER = client.__doc__ or ""
EXAMPLES = {
    "header": textwrap.dedent(HEADER.partition("\n\n")[2].partition("\n\nCovers")[0]),
    "page": re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0],
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


def test_it_is_typed() -> None:
    """Checkers of other programs read its annotations."""
    assert (Path(client.__file__).parents[1] / "py.typed").exists()
