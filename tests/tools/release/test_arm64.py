"""The image for arm64, unpacked, and run by an emulator of that processor in user mode.

Covers: its libraries and all modules of koordlet, a recorded machine, an agent that enforces on the
recorded machine of the demo.
Does not cover: the kernel and the machines of that processor: system calls are those of this host.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import koordlet
from tests.kit import needs
from tools.release import __main__ as release
from tools.release import commands, image

#: Two minutes to build, and every import is emulated.
pytestmark = [pytest.mark.soak, needs.program("setpriv")]

_NOBODY = 65534
_EMULATOR = "qemu-user-static"
#: Everything that koordlet loads, its command's entry and tests of others apart.
_IMPORTS = """
import importlib, pkgutil, platform, koordlet
names = [m.name for m in pkgutil.walk_packages(koordlet.__path__, "koordlet.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(platform.machine(), len(names))
"""


def unpack(archive: Path, root: Path) -> None:
    """Lay the layers of an image over each other, the lowest first."""
    root.mkdir()
    with tarfile.open(archive) as tar:

        def blob(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

        [manifest] = json.loads(blob("manifest.json"))
        for name in manifest["Layers"]:
            subprocess.run(["tar", "-xz", "-C", root], input=blob(name), check=True)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words that start the image's Python; its files are open to everybody."""
    folder = tmp_path_factory.mktemp("arm64")
    commands.run("apt-get", "-q", "download", _EMULATOR, folder=folder)
    [package] = folder.glob("*.deb")
    commands.run("dpkg-deb", "-x", package, folder / "emulator")
    assert release.main(["wheel", "image-arm64", "--into", str(folder)]) == 0
    [archive] = folder.glob("*-arm64.oci.tar")
    root = folder / "root"
    unpack(archive, root)
    for path in (folder, *folder.parents):
        if path != path.parent and path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode | 0o055)
    emulator = folder / "emulator/usr/bin/qemu-aarch64-static"
    return [str(emulator), "-L", str(root), f"{root}{image.PREFIX}/bin/python", "-P"]


def output(*words: str) -> str:
    """What a program prints that succeeds."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_imported(command: list[str]) -> None:
    """With the compiled parts of all dependencies."""
    machine, number = output(*command, "-c", _IMPORTS).split()

    assert (machine, int(number) > 500) == ("aarch64", True)
    assert output(*command, "-m", "koordlet", "--version") == f"koordlet {koordlet.__version__}\n"


def test_a_recorded_machine_is_read_as_here(command: list[str]) -> None:
    """Byte for byte what this processor makes of it."""
    recording = commands.REPO / "fixtures/sysfs/arm-no-nodes.tar.gz"
    words = ("-m", "koordlet", "topology", "--root", str(recording), "-o", "json")
    assert output(*command, *words) == output(sys.executable, *words)


def test_an_agent_enforces_on_a_recorded_machine(command: list[str], tmp_path: Path) -> None:
    """As nobody, in memory; it tells what is enforced, and ends well when it is asked to."""
    words = ["-u", "-m", "koordlet", "run", "--demo", "--http=127.0.0.1:0"]
    words.append(f"--state-dir={tmp_path}")
    if os.geteuid() == 0:
        os.chown(tmp_path, _NOBODY, _NOBODY)
        switch = (f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")
        command = ["setpriv", *switch, *command]
    seen = ""
    with subprocess.Popen(
        (*command, *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
    ) as agent:
        assert agent.stdout is not None
        for line in agent.stdout:
            seen += line
            if line.startswith("  BE   koordlet-demo/be"):
                agent.send_signal(signal.SIGINT)
                break
        seen += agent.stdout.read()

    assert agent.returncode == 0, seen
    assert "What is enforced" in seen
