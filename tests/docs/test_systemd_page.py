"""The commands of the page about systemd, in a root of their own; what it says of exposure.

Covers: installing files and units, enabling, disabling, removing; what is left then. Every other
command of systemd that a document shows is run in a machine (``tests.vm``), or a reason says why
not.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.docs import commands
from tests.kit import needs

PAGE = commands.REPO / "docs/operate-systemd.md"
MACHINE = commands.REPO / "tests/vm/probes"
pytestmark = needs.program("systemctl")

#: What is run here, with every absolute path below the root.
_HERE = ("install", "rm", "systemctl enable", "systemctl disable")
#: Why the rest of the page's blocks is not run here.
ELSEWHERE = {
    "python3.11 -m venv": "CONTRIBUTING's `make` makes an environment of the same lock file",
    "/opt/koordlet/bin/python -m pip": "the same; an index would be asked",
    "make deb": "tests/vm/test_package.py, a soak",
    "apt-get install": "tests/vm/test_package.py installs it by dpkg, a soak",
    "make wheel": "the environment's own build: tests/test_dependencies.py looks into it",
    "systemctl stop": "needs a running systemd: tests/vm/test_systemd.py",
    "systemctl daemon-reload": "needs a running systemd: tests/vm/test_systemd.py",
    "/opt/koordlet/bin/koordlet restore": "tests/vm/test_systemd.py, tests/e2e",
}
#: Verbs that no machine of the tests runs.
NOT_RUN = {
    "edit": "opens an editor; a drop-in is what tests/vm writes",
    "revert": "the page says what it takes away; nothing of koordlet's calls it",
    "enable": "test_install_and_uninstall",
    "disable": "test_install_and_uninstall",
}
_FOLDERS = ("var/lib/koordlet", "var/log/koordlet", "run/koordlet", "opt/koordlet")


def steps() -> Iterator[str]:
    """The lines of the page's blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        yield from block.splitlines()


def below(root: Path, line: str) -> list[str]:
    """The same command for what lies below a root; nothing is started there."""
    words = shlex.split(line)
    if words[0] == "systemctl":
        return ["systemctl", f"--root={root}", *(word for word in words[1:] if word != "--now")]
    return [f"{root}{word}" if word.startswith("/") else word for word in words]


def test_install_and_uninstall(tmp_path: Path) -> None:
    """Line by line: a unit that is enabled in between, and nothing of ours afterwards."""
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    for folder in _FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    enabled = []
    for line in steps():
        if not line.startswith(_HERE):
            assert any(line.startswith(start) for start in ELSEWHERE), line
            continue
        words = below(tmp_path, line)
        done = subprocess.run(
            words, cwd=commands.REPO, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, (line, done.stderr)
        if "enable" in words:
            enabled = [link.name for link in tmp_path.rglob("*.wants/*")]

    assert enabled == ["koordlet.service"]
    assert list(tmp_path.rglob("*koordlet*")) == []


def test_drop_ins_are_what_the_pages_say() -> None:
    """Each file of systemd/drop-ins is named on the page, and each of its lines on some page."""
    page, network = PAGE.read_text(), PAGE.with_name("network.md").read_text()
    drop_ins = sorted((commands.REPO / "systemd/drop-ins").iterdir())

    assert len(drop_ins) == page.count("`drop-ins/") == 6
    for path in drop_ins:
        assert f"`drop-ins/{path.name}`" in page
        section, *lines = [line for line in path.read_text().splitlines() if line[:1] != "#"]
        assert section == "[Service]"
        assert [line for line in lines if line not in page and line not in network] == []


@needs.program("systemd-analyze")
def test_the_exposure_is_as_the_page_says() -> None:
    """By systemd's own measure, without a running one."""
    exposures = []
    for unit in ("koordlet.service", "koordlet-restore.service"):
        words = ["systemd-analyze", "security", "--no-pager", "--offline=yes", unit]
        done = subprocess.run(
            words, cwd=commands.REPO / "systemd", capture_output=True, text=True, check=False
        )
        match = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
        if match is None:
            needs.missing(f"this systemd cannot say so: {done.stderr[-200:]}")
        exposures.append(match[1])

    page = " ".join(PAGE.read_text().split())
    assert (
        f"says **{exposures[0]}** (0 is best, 10 worst), and {exposures[1]} for the helper" in page
    )


def test_verbs_are_run_in_a_machine() -> None:
    """Each that a document shows, but those with a reason."""
    probes = "\n".join(path.read_text() for path in MACHINE.glob("*.py"))
    shown = {
        match[1]
        for page in commands.PAGES
        for line in commands.lines(page)
        if (match := re.match(r"(?:\S+\| )?systemctl (?:-\S+ )*([a-z-]+)", line))
    }

    assert len(shown) >= 8
    assert {verb for verb in shown - NOT_RUN.keys() if f'"{verb}"' not in probes} == set()
    assert NOT_RUN.keys() <= shown
