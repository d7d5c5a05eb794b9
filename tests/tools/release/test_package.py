"""What the package is made of: its scripts are shell, its units find the command, nothing is lost.

Does not cover: dpkg and systemd, which run the scripts (``tests.vm.test_package``).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.release import commands, package

SCRIPTS = {"postinst": package._POSTINST, "prerm": package._PRERM, "postrm": package._POSTRM}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_shell(name: str, tmp_path: Path) -> None:
    """Each is read without a complaint, and ends at its first error."""
    path = tmp_path / name
    path.write_text(SCRIPTS[name])
    done = subprocess.run(["sh", "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert SCRIPTS[name].startswith("#!/bin/sh\nset -e\n")


def test_units_drop_ins_and_configuration_are_in_it(tmp_path: Path) -> None:
    """Every unit of systemd/, with the command where the package has it."""
    (tmp_path / "usr").mkdir()
    package._files(tmp_path)
    units = {path.name: path.read_text() for path in (tmp_path / "lib/systemd/system").iterdir()}
    source = commands.REPO / "systemd"

    assert units.keys() == {p.name for p in source.iterdir() if p.suffix in (".service", ".timer")}
    assert "/opt/" not in "".join(units.values())
    assert "ExecStart=/usr/bin/koordlet run\n" in units["koordlet.service"]
    drop_ins = {p.name for p in (tmp_path / "usr/share/koordlet/drop-ins").iterdir()}
    assert drop_ins == {p.name for p in (source / "drop-ins").iterdir()}
    assert (tmp_path / "etc/koordlet/config.yaml").exists()
    assert str((tmp_path / "usr/bin/koordlet").readlink()) == "../lib/koordlet/bin/koordlet"


def test_a_removal_that_cannot_restore_is_refused(tmp_path: Path) -> None:
    """With a koordlet that fails the script names the fix; without a journal it is done."""
    command = tmp_path / "koordlet"
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    journal = tmp_path / "journal"
    script = package._PRERM.replace("/var/lib/koordlet/journal", str(journal)).replace(
        "/run/systemd/system", str(tmp_path / "none")
    )

    def removed() -> subprocess.CompletedProcess[str]:
        words = ["sh", "-c", script, "prerm", "remove"]
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(words, env=path, capture_output=True, text=True, check=False)

    assert removed().returncode == 0
    journal.touch()
    done = removed()
    assert (done.returncode, f"rm {journal}" in done.stderr) == (1, True)
    command.write_text("#!/bin/sh\nexit 0\n")
    assert removed().returncode == 0


def test_a_removal_stops_the_timer_before_the_agent(tmp_path: Path) -> None:
    """Else the timer's look starts the helper beside the stop, and its program is gone by then."""
    log = tmp_path / "log"
    invoke = tmp_path / "deb-systemd-invoke"
    invoke.write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
    invoke.chmod(0o755)
    script = package._PRERM.replace("/run/systemd/system", str(tmp_path)).replace(
        "/var/lib/koordlet/journal", str(tmp_path / "none")
    )
    words = ["sh", "-c", script, "prerm", "remove"]
    subprocess.run(words, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)

    assert log.read_text().splitlines() == [
        "stop koordlet-deadline.timer koordlet-deadline.service",
        "stop koordlet.service koordlet-restore.service",
    ]
