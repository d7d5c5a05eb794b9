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
    page
    for page in (*commands.PAGES, commands.REPO / "CHANGELOG.md", commands.REPO / "STYLE.md")
    if page.name not in MADE
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
    pages: dict[str, str] = {}
    for page in WRITTEN:
        for span in spans(page):
            known = re.fullmatch(pattern, span) if whole else None
            for match in re.finditer(pattern, span) if not whole else [known] if known else []:
                pages.setdefault(match[0], page.name)
    return {name: page for name, page in pages.items() if name not in FOREIGN}


@functools.cache
def files() -> frozenset[str]:
    """Every file and folder of the checkout's rooms."""
    every = (path for room in _ROOMS for path in (commands.REPO / room).rglob("*"))
    names = [
        str(path.relative_to(commands.REPO)) for path in every if "__pycache__" not in path.parts
    ]
    return frozenset([*names, *(path.name for path in commands.REPO.iterdir())])


@functools.cache
def sources() -> str:
    """The text of all of them but of the pages."""
    return "\n".join(
        (commands.REPO / name).read_text(errors="replace")
        for name in sorted(files())
        if name.endswith(_SOURCES) and not name.startswith(("docs/", "fixtures/", "tests/docs/"))
    )


@functools.cache
def words() -> frozenset[str]:
    """Every word of it."""
    return frozenset(re.findall(r"\w+", sources()))


@functools.cache
def keys() -> frozenset[str]:
    """Every key of the configuration, every section, and their ends."""
    known: set[str] = set()
    for field in catalog.fields():
        parts = field.path.split(".")
        for end in range(1, len(parts) + 1):
            known.update(".".join(parts[start:end]) for start in range(end))
    return frozenset(known)


def test_files() -> None:
    """Paths into the checkout."""
    at = rf"(?:{'|'.join(map(re.escape, _ROOMS))})/[\w./*{{}},-]*\w/?"
    mentioned = {path: page for path, page in named(at, whole=True).items() if "{" not in path}
    missing = {
        path: page
        for path, page in mentioned.items()
        if path.rstrip("/") not in files() and not [*commands.REPO.glob(path)]
    }

    assert len(mentioned) >= 50
    assert missing == {}


def test_dotted_names() -> None:
    """Keys, files of kernels, signals, events: the schema, checkout or code has each part."""
    mentioned = named(_DOTTED, whole=True)
    names = {Path(name).name for name in files()}
    missing = {
        name: page
        for name, page in mentioned.items()
        if name not in keys() and name not in names and not set(name.split(".")) <= words()
    }

    assert len(mentioned) >= 80
    assert missing == {}


def test_keys() -> None:
    """What begins like a section of the configuration is one of its keys."""
    tops = {field.path.split(".")[0] for field in catalog.fields()} - {"scheduler", "cgroups"}
    mentioned = {
        key: page for key, page in named(_DOTTED, whole=True).items() if key.split(".")[0] in tops
    }

    assert len(mentioned) >= 30
    assert {key: page for key, page in mentioned.items() if key not in keys()} == {}


def test_variables() -> None:
    """Those that set a key, and those that tests and scripts read."""
    variables = {field.variable for field in catalog.fields()}
    mentioned = named(r"KOORDLET_[A-Z][A-Z_]*[A-Z]")

    assert len(mentioned) >= 4
    for name, page in mentioned.items():
        assert name in variables if "__" in name else name in sources(), page


def test_metrics() -> None:
    """Of the agent and of the scheduler; a star stands for the rest of a name."""
    known = {family.name for family in metrics.table()}
    rooms = "scheduler|evictions|disruption|headroom|migration|move|descheduler|webhook"
    served = rf'"((?:scheduler|koordlet_(?:{rooms}))_[a-z_]+)"'
    known |= set(re.findall(served, sources()))
    known |= {f"{name}_total" for name in known}
    mentioned = named(r"\b(?:koordlet|scheduler)_[a-z0-9_]+\*?(?![\w.]*\.(?:py|yaml|json))")
    ends = ("", "_bucket", "_sum", "_count")
    missing = {
        name: page
        for name, page in mentioned.items()
        if not (
            name.endswith(("_", "*"))
            and any(metric.startswith(name.rstrip("*")) for metric in known)
        )
        and not any(name.removesuffix(end) in known for end in ends)
    }

    assert len(mentioned) >= 20
    assert missing == {}


def test_conditions_and_kinds() -> None:
    """Words in capitals: conditions, reasons, kinds, plugins, fields."""
    mentioned = named(_CAMEL, whole=True)

    assert len(mentioned) >= 35
    assert {word: page for word, page in mentioned.items() if word not in words()} == {}


def test_labels_and_annotations() -> None:
    """Ours and the peer's, by the name behind the slash."""
    mentioned = named(r"[a-z.]*(?:koordinator\.sh|koordlet\.io)/[a-zA-Z][\w-]*\w")

    assert len(mentioned) >= 20
    missing = {
        label
        for label in mentioned
        if label not in sources() and label.split("/")[1] not in sources()
    }
    assert missing == set()


def test_options() -> None:
    """One that a page tells by itself is declared somewhere."""
    mentioned = {re.split("[= ]", option)[0] for option in named(r"--[a-z][\w.-]*.*", whole=True)}

    assert len(mentioned) >= 15
    declared = set(re.findall(r'"(?:-\w, )?(--[a-z][\w.-]*)[" ]', sources()))
    assert mentioned - OPTIONS.keys() - declared == set()


def configurations() -> Iterator[tuple[str, str]]:
    """Blocks that are a configuration, or a part of one."""
    tops = {field.path.split(".")[0] for field in catalog.fields()}
    for page in WRITTEN:
        text = page.read_text()
        blocks = [body for language, body in _BLOCK.findall(text) if language == "yaml"]
        blocks += map(
            textwrap.dedent, re.findall(r"(?:^ {4}.*\n)+", _BLOCK.sub("", text), re.MULTILINE)
        )
        for body in blocks:
            try:
                document = yaml.safe_load(body)
            except yaml.YAMLError:
                continue
            if isinstance(document, dict) and document.keys() - {"apiVersion", "kind"} <= tops:
                yield page.name, body


SHOWN = list(configurations())


@pytest.mark.parametrize(("page", "body"), SHOWN, ids=[page for page, _ in SHOWN])
def test_configurations(page: str, body: str) -> None:
    """Whoever copies them gets no error."""
    head = "" if "apiVersion" in body else "apiVersion: koordlet.io/v1\nkind: Config\n"

    loaded = loader.from_text(head + body, page, {}, {})

    assert any(origin.startswith(page) for origin in loaded.origins.values())
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
    mentioned = {path for page in WRITTEN for span in spans(page) for path in _HTTP.findall(span)}
    mentioned -= {"/api/v1/"}
    process = commands.REPO / "koordlet/scheduler/process"
    served = ("pages.py", "descheduler.py", "moves_pages.py")
    scheduler = "".join((process / name).read_text() for name in served)

    assert len(mentioned) >= 9
    for path in mentioned:
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
    assert [name for name in (*FOREIGN, *OPTIONS) if name not in every] == []
