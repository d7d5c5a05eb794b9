"""The Debian package: the program in a private environment, its units, its configuration.

Covers: the tree, control files, what dpkg runs at each turn, the list of other people's parts.
Does not cover: the program itself (``environment``), what the units say (``systemd/``).

An upgrade keeps the limits: the agent is restarted, not stopped. A removal puts everything back,
and is refused where that fails: nobody else could do it later.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path

from tools.release import commands, environment, parts

PREFIX = "/usr/lib/koordlet"
_UNITS = commands.REPO / "systemd"
_MAINTAINER = "koordlet <maintainers@koordlet.example>"
_CONTROL = """\
Package: koordlet
Version: {version}
Section: admin
Priority: optional
Architecture: amd64
Depends: libc6 (>= 2.36), libstdc++6, python3.11, init-system-helpers (>= 1.52)
Recommends: systemd (>= 252)
Maintainer: {maintainer}
Installed-Size: {size}
Description: QoS-aware node agent for one machine or a Kubernetes cluster
 Lets latency-sensitive services and best-effort work share a machine: it
 decides which CPUs, memory and cache each workload may use, enforces that
 through cgroups and resctrl, explains every write, and restores the machine
 when it stops.
 .
 The package brings the agent as a service of systemd, the scheduler and the
 descheduler as commands, and the Python packages that they run with.
"""
_POSTINST = """\
#!/bin/sh
set -e
case "$1" in
configure | abort-upgrade | abort-deconfigure | abort-remove)
	deb-systemd-helper unmask koordlet.service >/dev/null || true
	if deb-systemd-helper --quiet was-enabled koordlet.service; then
		deb-systemd-helper enable koordlet.service >/dev/null || true
	else
		deb-systemd-helper update-state koordlet.service >/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		# A restart keeps the limits; koordlet-restore.service waits for the new agent.
		if [ -n "$2" ]; then action=restart; else action=start; fi
		deb-systemd-invoke "$action" koordlet.service >/dev/null || true
	fi
	;;
esac
"""
_PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ]; then
	if [ -d /run/systemd/system ]; then
		# First who would start another: what it starts could not run without the program.
		deb-systemd-invoke stop koordlet-deadline.timer koordlet-deadline.service >/dev/null || true
		deb-systemd-invoke stop koordlet.service koordlet-restore.service >/dev/null || true
	fi
	if [ -e /var/lib/koordlet/journal ] && ! koordlet restore; then
		echo "koordlet: the files named above still hold its values, so it stays installed." >&2
		echo "fix: remove what keeps them, and remove the package again; or give them up:" >&2
		echo "     rm /var/lib/koordlet/journal" >&2
		exit 1
	fi
fi
"""
_POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = remove ] && command -v deb-systemd-helper >/dev/null; then
	deb-systemd-helper mask koordlet.service >/dev/null || true
fi
if [ "$1" = purge ]; then
	if command -v deb-systemd-helper >/dev/null; then
		deb-systemd-helper purge koordlet.service >/dev/null || true
		deb-systemd-helper unmask koordlet.service >/dev/null || true
	fi
	rm -rf /var/lib/koordlet /var/log/koordlet /run/koordlet
fi
"""
_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: koordlet
Comment: The Python packages below {prefix}/lib have licences of their own; their texts
 are beside each of them, in its *.dist-info folder.
{parts}

Files: *
Copyright: 2026 The koordlet authors
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
"""
#: What lintian finds, and why it is so.
_OVERRIDES = """\
# The dependencies are the locked wheels of their makers, each checked by its hash.
koordlet: embedded-library *
koordlet: unstripped-binary-or-object *
koordlet: hardening-no-fortify-functions *
koordlet: hardening-no-bindnow *
koordlet: hardening-no-pie *
koordlet: library-not-linked-against-libc *
koordlet: shared-library-lacks-prerequisites *
koordlet: undeclared-elf-prerequisites *
koordlet: extra-license-file *
koordlet: package-contains-documentation-outside-usr-share-doc *
koordlet: executable-not-elf-or-script *
koordlet: script-not-executable *
koordlet: national-encoding *
koordlet: python-module-has-overly-generic-name *
koordlet: package-contains-vcs-control-file *
koordlet: unusual-interpreter *
koordlet: incorrect-path-for-interpreter *
# Byte code that is taken without a look at the source; the agent must start on a full disk, too.
koordlet: package-installs-python-bytecode *
koordlet: package-installs-python-pycache-dir *
# The command runs by the environment's own interpreter, a link to that of python3.11.
koordlet: python3-script-but-no-python3-dep *
# `koordlet --help` and each command's --help teach with examples.
koordlet: no-manual-page *
# The helper and the timer are started by the agent's unit, which is the one to enable.
koordlet: systemd-service-file-missing-install-key *
koordlet: initial-upload-closes-no-bugs *
koordlet: maintainer-script-calls-systemctl *
koordlet: systemd-service-file-missing-documentation-key *
"""


def build(into: Path, wheel: Path) -> tuple[Path, list[parts.Part]]:
    """Write the package; its path and what is in it beside koordlet."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work, "tree")
        tree.mkdir(mode=0o755)
        site = environment.build(tree, PREFIX, wheel)
        several = [part for part in parts.of_python(site) if part.name != "koordlet"]
        return pack(tree, several, into, environment.version(), "-Zxz", "-z3"), several


def pack(
    tree: Path, several: Sequence[parts.Part], into: Path, version: str, *compression: str
) -> Path:
    """Add all that surrounds the environment in a folder, and pack it; the package."""
    epoch = commands.epoch()
    _files(tree)
    _documents(tree, several, version, epoch)
    _control(tree, version)
    archive = into / f"koordlet_{version}_amd64.deb"
    words = ("dpkg-deb", "--root-owner-group", *compression, "--build")
    commands.run(*words, tree, archive, SOURCE_DATE_EPOCH=str(epoch))
    return archive


def _files(tree: Path) -> None:
    """Command, units, drop-ins, configuration."""
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/koordlet").symlink_to("../lib/koordlet/bin/koordlet")
    units = tree / "lib/systemd/system"
    units.mkdir(parents=True)
    for path in (*_UNITS.glob("*.service"), *_UNITS.glob("*.timer")):
        text = path.read_text().replace("/opt/koordlet/bin/koordlet", "/usr/bin/koordlet")
        (units / path.name).write_text(text)
    shutil.copytree(_UNITS / "drop-ins", tree / "usr/share/koordlet/drop-ins")
    (tree / "etc/koordlet").mkdir(parents=True)
    shutil.copyfile(_UNITS / "config.yaml", tree / "etc/koordlet/config.yaml")


def _documents(tree: Path, several: Sequence[parts.Part], version: str, epoch: int) -> None:
    folder = tree / "usr/share/doc/koordlet"
    folder.mkdir(parents=True)
    listed = "\n".join(f" {p.name} {p.version}: {p.licence or 'see its text'}" for p in several)
    (folder / "copyright").write_text(_COPYRIGHT.format(prefix=PREFIX, parts=listed))
    date = formatdate(epoch)
    entry = f"koordlet ({version}) stable; urgency=medium\n\n  * Release {version}.\n\n"
    written = f"{entry} -- {_MAINTAINER}  {date}\n".encode()
    (folder / "changelog.gz").write_bytes(gzip.compress(written, 9, mtime=0))
    (folder / "NEWS.gz").write_bytes(
        gzip.compress((commands.REPO / "CHANGELOG.md").read_bytes(), 9, mtime=0)
    )
    overrides = tree / "usr/share/lintian/overrides"
    overrides.mkdir(parents=True)
    (overrides / "koordlet").write_text(_OVERRIDES)


def _control(tree: Path, version: str) -> None:
    sums, size = [], 0

    def seen(name: str, _: object, path: Path) -> None:
        nonlocal size
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            size += len(data) + 4095
            sums.append(f"{hashlib.md5(data, usedforsecurity=False).hexdigest()}  {name}\n")
        elif path.is_dir() and not path.is_symlink():
            path.chmod(0o755)

    environment.walk(tree, seen)
    folder = tree / "DEBIAN"
    folder.mkdir(mode=0o755)
    text = _CONTROL.format(version=version, maintainer=_MAINTAINER, size=size // 1024)
    (folder / "control").write_text(text)
    (folder / "conffiles").write_text("/etc/koordlet/config.yaml\n")
    (folder / "md5sums").write_text("".join(sums))
    for name, script in (("postinst", _POSTINST), ("prerm", _PRERM), ("postrm", _POSTRM)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
