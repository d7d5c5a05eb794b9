"""What the documents name exists: keys, variables, options, metrics, conditions, files, paths.

Covers: pages that people write; YAML that a reader may copy; every ``curl``, run.
Does not cover: pages that are made from the code (``test_site`` and tests beside their makers hold
those); names of other programs, which have a reason here.
"""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from koordlet.config import catalog, loader
from koordlet.http import message, routes, server
from koordlet.report import http_api, metrics
from tests.docs import commands
from tests.kit import loops, needs, recorders, views

MADE = {
    "api-grpc.md", "api-objects.md", "cgroup-files.md", "configuration.md", "kernel-answers.md",
    "koordinator.md", "metrics.md", "policies.md",
}  # fmt: skip
WRITTEN = [
    one
    for one in (*commands.PAGES, commands.REPO / "CHANGELOG.md", commands.REPO / "STYLE.md")
    if one.name not in MADE
]
_ROOMS = ("koordlet", "tools", "deploy", "systemd", "tests", "fixtures", ".ci", "docs")
_SOURCES = (".py", ".yaml", ".yml", ".json", ".proto", ".js", ".html", ".service", ".c", ".toml")

#: Names of others, with whose they are.
FOREIGN = {
    "CustomResourceFieldSelectors": "a gate of API servers",
    "mock.patch": "Python's",
    "scheduling.koordinator.sh/device-allocated": "the peer's: nobody here reads it",
    "scheduler.db.form1": "the number is that of the older form",
    "build/site/index.html": "`make docs` makes it",
}
#: Options that a page tells by themselves, and that are no command's of koordlet.
OPTIONS = {
    **dict.fromkeys(("--atomic", "--reset-then-reuse-values", "--reuse-values"), "helm"),
    **dict.fromkeys(("--levels", "--hogs"), "python -m tests.bench.colocation"),
}

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(r"[a-z][a-z_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_CAMEL = re.compile(r"(?:[A-Z][a-z]+){2,}(?:[A-Z]+[a-z]*)*")
_HTTP = re.compile(
    r"(?<![\w/.])(?:127\.0\.0\.1:\d+)?(/(?:api/v1|healthz|livez|readyz|metrics)[\w/?=&-]*)"
)


def spans(page: Path) -> Iterator[str]:
    """What a page has between backquotes, outside of its blocks."""
    yield from re.findall(r"`([^`\n]+)`", _BLOCK.sub("", page.read_text()))


def named(pattern: str | re.Pattern[str], *, whole: bool = False) -> dict[str, str]:
    """What looks so, with the page that names it first; ``whole``: a span that is nothing else."""
    found: dict[str, str] = {}
    for page in WRITTEN:
        for span in spans(page):
            known = re.fullmatch(pattern, span) if whole else None
            for one in re.finditer(pattern, span) if not whole else [known] if known else []:
                found.setdefault(one[0], page.name)
    return {name: page for name, page in found.items() if name not in FOREIGN}


@functools.cache
def files() -> frozenset[str]:
    """Every file and folder of the checkout's rooms."""
    every = (one for room in _ROOMS for one in (commands.REPO / room).rglob("*"))
    found = [str(one.relative_to(commands.REPO)) for one in every if "__pycache__" not in one.parts]
    return frozenset([*found, *(one.name for one in commands.REPO.iterdir())])


@functools.cache
def sources() -> str:
    """The text of all of them but of the pages."""
    return "\n".join(
        (commands.REPO / one).read_text(errors="replace")
        for one in sorted(files())
        if one.endswith(_SOURCES) and not one.startswith(("docs/", "fixtures/", "tests/docs/"))
    )


@functools.cache
def words() -> frozenset[str]:
    """Every word of it."""
    return frozenset(re.findall(r"\w+", sources()))


@functools.cache
def keys() -> frozenset[str]:
    """Every key of the configuration, every section, and their ends."""
    found: set[str] = set()
    for one in catalog.fields():
        parts = one.path.split(".")
        for end in range(1, len(parts) + 1):
            found.update(".".join(parts[start:end]) for start in range(end))
    return frozenset(found)


def test_files() -> None:
    """Paths into the checkout."""
    at = rf"(?:{'|'.join(map(re.escape, _ROOMS))})/[\w./*{{}},-]*\w/?"
    asked = {one: page for one, page in named(at, whole=True).items() if "{" not in one}
    missing = {
        one: page
        for one, page in asked.items()
        if one.rstrip("/") not in files() and not [*commands.REPO.glob(one)]
    }

    assert len(asked) >= 50
    assert missing == {}


def test_dotted_names() -> None:
    """Keys, files of kernels, signals, events: the schema, checkout or code has each part."""
    asked = named(_DOTTED, whole=True)
    names = {Path(one).name for one in files()}
    missing = {
        one: page
        for one, page in asked.items()
        if one not in keys() and one not in names and not set(one.split(".")) <= words()
    }

    assert len(asked) >= 80
    assert missing == {}


def test_keys() -> None:
    """What begins like a section of the configuration is one of its keys."""
    tops = {one.path.split(".")[0] for one in catalog.fields()} - {"scheduler", "cgroups"}
    asked = {
        one: page for one, page in named(_DOTTED, whole=True).items() if one.split(".")[0] in tops
    }

    assert len(asked) >= 30
    assert {one: page for one, page in asked.items() if one not in keys()} == {}


def test_variables() -> None:
    """Those that set a key, and those that tests and scripts read."""
    variables = {one.variable for one in catalog.fields()}
    asked = named(r"KOORDLET_[A-Z][A-Z_]*[A-Z]")

    assert len(asked) >= 4
    for one, page in asked.items():
        assert one in variables if "__" in one else one in sources(), page


def test_metrics() -> None:
    """Of the agent and of the scheduler; a star stands for the rest of a name."""
    known = {one.name for one in metrics.table()}
    rooms = "scheduler|evictions|disruption|headroom|migration|move|descheduler|webhook"
    served = rf'"((?:scheduler|koordlet_(?:{rooms}))_[a-z_]+)"'
    known |= set(re.findall(served, sources()))
    known |= {f"{one}_total" for one in known}
    asked = named(r"\b(?:koordlet|scheduler)_[a-z0-9_]+\*?(?![\w.]*\.(?:py|yaml|json))")
    ends = ("", "_bucket", "_sum", "_count")
    missing = {
        one: page
        for one, page in asked.items()
        if not (one.endswith(("_", "*")) and any(it.startswith(one.rstrip("*")) for it in known))
        and not any(one.removesuffix(end) in known for end in ends)
    }

    assert len(asked) >= 20
    assert missing == {}


def test_conditions_and_kinds() -> None:
    """Words in capitals: conditions, reasons, kinds, plugins, fields."""
    asked = named(_CAMEL, whole=True)

    assert len(asked) >= 35
    assert {one: page for one, page in asked.items() if one not in words()} == {}


def test_labels_and_annotations() -> None:
    """Ours and the peer's, by the name behind the slash."""
    asked = named(r"[a-z.]*(?:koordinator\.sh|koordlet\.io)/[a-zA-Z][\w-]*\w")

    assert len(asked) >= 20
    missing = {one for one in asked if one not in sources() and one.split("/")[1] not in sources()}
    assert missing == set()


def test_options() -> None:
    """One that a page tells by itself is declared somewhere."""
    asked = {re.split("[= ]", one)[0] for one in named(r"--[a-z][\w.-]*.*", whole=True)}

    assert len(asked) >= 15
    declared = set(re.findall(r'"(?:-\w, )?(--[a-z][\w.-]*)[" ]', sources()))
    assert asked - OPTIONS.keys() - declared == set()


def configurations() -> Iterator[tuple[str, str]]:
    """Blocks that are a configuration, or a part of one."""
    tops = {one.path.split(".")[0] for one in catalog.fields()}
    for page in WRITTEN:
        text = page.read_text()
        blocks = [body for language, body in _BLOCK.findall(text) if language == "yaml"]
        blocks += map(
            textwrap.dedent, re.findall(r"(?:^ {4}.*\n)+", _BLOCK.sub("", text), re.MULTILINE)
        )
        for body in blocks:
            try:
                found = yaml.safe_load(body)
            except yaml.YAMLError:
                continue
            if isinstance(found, dict) and found.keys() - {"apiVersion", "kind"} <= tops:
                yield page.name, body


SHOWN = list(configurations())


@pytest.mark.parametrize(("page", "body"), SHOWN, ids=[page for page, _ in SHOWN])
def test_configurations(page: str, body: str) -> None:
    """Whoever copies them gets no error."""
    head = "" if "apiVersion" in body else "apiVersion: koordlet.io/v1\nkind: Config\n"

    found = loader.from_text(head + body, page, {}, {})

    assert any(origin.startswith(page) for origin in found.origins.values())
    assert len(SHOWN) >= 6


@pytest.fixture
def agent(tmp_path: Path) -> routes.Routes:
    """What an agent answers."""
    (tmp_path / "audit.jsonl").touch()
    api = http_api.Api(
        views.view, version="1.2.3", recorded=recorders.recorder(), audit=tmp_path / "audit.jsonl",
        monotonic=lambda: 100.5, wall=lambda: views.WALL,
    )  # fmt: skip
    return api.routes()


def test_paths(agent: routes.Routes) -> None:
    """Of HTTP: the agent answers 200, or the scheduler or descheduler has the path."""
    asked = {path for page in WRITTEN for span in spans(page) for path in _HTTP.findall(span)}
    asked -= {"/api/v1/"}
    process = commands.REPO / "koordlet/scheduler/process"
    served = ("pages.py", "descheduler.py", "moves_pages.py")
    scheduler = "".join((process / name).read_text() for name in served)

    assert len(asked) >= 9
    for path in asked:
        target = path.replace("NS/NAME", "default/web")
        status = agent.answer(message.parse(b"GET", target.encode(), [])).status
        assert status == 200 or f'"{path}"' in scheduler or path == "/api/v1/events", path


@needs.program("curl")
def test_curl(agent: routes.Routes) -> None:
    """Every one of a page, as it is typed, against an agent's server."""
    shown = {line for page in WRITTEN for line in commands.lines(page) if line.startswith("curl ")}
    loop = loops.LoopThread()
    serving = server.HttpServer("127.0.0.1:0", agent)
    address = loop.run(serving.start())
    try:
        for line in shown:
            words = shlex.split(line.replace("127.0.0.1:9316", address))
            words[1:1] = ["--fail", "--max-time", "20"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert (done.returncode, bool(done.stdout)) == (0, True), (line, done.stderr)
    finally:
        loop.run(serving.stop())
        loop.close()

    assert len(shown) >= 2


def test_every_reason_is_needed() -> None:
    """No name of others is excused that no page has."""
    every = "\n".join(page.read_text() for page in WRITTEN)
    assert [one for one in (*FOREIGN, *OPTIONS) if one not in every] == []
