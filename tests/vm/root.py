"""The guest's root file system: Debian packages laid out without running their scripts.

Covers: unpacking, and the little of the packages' set-up scripts that the guest needs (accounts,
links, byte code).
Does not cover: fetching packages and making the disk (``image``).

Why no scripts: unpacking takes seconds where a full installation takes minutes, and needs no
``chroot``.
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator

from tests.vm import packages, tool

GUEST_FILES = pathlib.Path(__file__).parent / "guest"

#: Where the project and its dependencies are mounted in the guest; both are importable there.
REPO, SITE = "/srv/koordlet", "/srv/site-packages"

#: Units that only cost time in a machine that lives for a minute.
MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "console-getty.service"),
    *("dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer"),
    *("getty@tty1.service", "getty-static.service", "kmod-static-nodes.service"),
    *("ldconfig.service", "modprobe@.service", "serial-getty@ttyS0.service"),
    *("systemd-binfmt.service", "systemd-boot-system-token.service", "systemd-firstboot.service"),
    *("systemd-hwdb-update.service", "systemd-journal-catalog-update.service"),
    *("systemd-journal-flush.service", "systemd-machine-id-commit.service"),
    *("systemd-modules-load.service", "systemd-pstore.service", "systemd-random-seed.service"),
    *("systemd-remount-fs.service", "systemd-sysusers.service", "systemd-timesyncd.service"),
    *("systemd-tmpfiles-clean.timer", "systemd-udev-trigger.service"),
    *("systemd-update-utmp.service", "systemd-update-utmp-runlevel.service"),
    *("proc-sys-fs-binfmt_misc.automount",),
)

#: Groups that the udev package's script makes; its rules and systemd's name them.
UDEV_GROUPS = ("input", "kvm", "render", "sgx")

#: Not needed where nobody reads manuals.
LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info")


def unpack(archives: Iterable[pathlib.Path], root: pathlib.Path) -> None:
    """Unpacks packages over each other, on a tree whose /bin, /lib, /sbin are links into /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda archive: extract(archive, root), archives):
            pass


def extract(archive: pathlib.Path, root: pathlib.Path, members: Iterable[str] = ()) -> None:
    """Unpacks one package, or only the named members of it."""
    tar = ["tar", "-x", "-C", str(root), "--keep-directory-symlink"]
    tar += [f"--exclude={name}" for name in LEFT_OUT]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE
    ) as data:
        subprocess.run([*tar, *members], stdin=data.stdout, check=True)
    if data.returncode:
        raise RuntimeError(f"dpkg-deb cannot read {archive.name}")


def finish(root: pathlib.Path) -> None:
    """What the packages' scripts would have done, as far as the guest needs it."""
    _accounts(root)
    etc, units = root / "etc", root / "etc" / "systemd" / "system"
    (etc / "machine-id").write_text("6b6f6f72646c657476697274756c6d63\n")
    (etc / "hostname").write_text("vm\n")
    (etc / "hosts").write_text("127.0.0.1 localhost vm\n")
    (etc / "fstab").write_text("")
    (etc / "mtab").symlink_to("/proc/self/mounts")
    (root / "usr/bin/awk").symlink_to("mawk")
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    for unit in ("vm.target", "vm-agent.service"):
        shutil.copy(GUEST_FILES / unit, units / unit)
    # Generators look for disks, swap and consoles that the guest has not.
    shutil.rmtree(root / "usr/lib/systemd/system-generators")
    importable = root / "usr/local/lib/python3.11/dist-packages/koordlet.pth"
    importable.parent.mkdir(parents=True)
    importable.write_text(f"{REPO}\n{SITE}\n")
    for folder in ("opt", "mnt", "media", REPO[1:], SITE[1:]):
        (root / folder).mkdir(parents=True, exist_ok=True)
    compile_python(root / "usr/lib/python3.11", "/usr/lib/python3.11")
    tool.run(["ldconfig", "-r", str(root)])


def add_modules(archive: pathlib.Path, root: pathlib.Path, boot: pathlib.Path) -> pathlib.Path:
    """Puts the wanted kernel modules into the tree and the kernel into ``boot``; their folder."""
    extract(archive, boot)
    (source,) = (boot / "lib/modules").iterdir()
    return copy_modules(source, root)


def copy_modules(source: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    """Puts what the guest keeps of a kernel's modules into the tree, with their order; where."""
    target = root / "usr/lib/modules" / source.name
    target.mkdir(parents=True)
    for path in source.glob("modules.*"):
        shutil.copy(path, target)
    for name in packages.MODULE_TREES:
        module = source / "kernel" / name
        # A module may be packed: its name then goes on.
        for tree in module.parent.glob(f"{module.name}*" if module.suffix else module.name):
            into = target / tree.relative_to(source)
            into.parent.mkdir(parents=True, exist_ok=True)
            if tree.is_dir():
                shutil.copytree(tree, into)
            else:
                shutil.copy(tree, into)
    tool.run(["depmod", "-b", str(root), source.name])
    return target


def compile_python(folder: pathlib.Path, seen_as: str) -> None:
    """Byte code for all modules of a folder, that the guest takes without a look at the source.

    The guest's Python is 3.11, whose byte code any CPython 3.11 makes.
    """
    if sys.version_info[:2] != (3, 11):
        return  # the guest then compiles for itself, slowly
    command = [sys.executable, "-m", "compileall", "-q", "-j2", "-s", str(folder), "-p", seen_as]
    command += ["--invalidation-mode", "unchecked-hash", str(folder)]
    # Not checked: some packages ship templates and tests that are no Python.
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


def _accounts(root: pathlib.Path) -> None:
    """passwd, group and shadow: Debian's base accounts and those that sysusers.d asks for."""
    base = root / "usr/share/base-passwd"
    users = (base / "passwd.master").read_text().replace(":*:", ":x:").splitlines()
    groups = (base / "group.master").read_text().splitlines()
    known = {line.partition(":")[0] for line in users}
    known_groups = {line.partition(":")[0] for line in groups}
    free = iter(range(990, 900, -1))
    for kind, name, home in _wanted_accounts(root):
        number = next(free)
        if name not in known_groups:
            known_groups.add(name)
            groups.append(f"{name}:x:{number}:")
        if kind == "u" and name not in known:
            known.add(name)
            users.append(f"{name}:x:{number}:{number}::{home}:/usr/sbin/nologin")
    shadow = [f"{line.partition(':')[0]}:*:19000:0:99999:7:::" for line in users]
    for name, lines in (("passwd", users), ("group", groups), ("shadow", shadow)):
        (root / "etc" / name).write_text("".join(f"{line}\n" for line in lines))
    (root / "etc/shadow").chmod(0o600)


def _wanted_accounts(root: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Kind (u or g), name and home of each account that sysusers.d and udev want."""
    yield from (("g", name, "/") for name in UDEV_GROUPS)
    for path in sorted((root / "usr/lib/sysusers.d").glob("*.conf")):
        for line in path.read_text().splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0].rstrip("!") in ("u", "g"):
                home = words[4] if len(words) > 4 and words[4] != "-" else "/"
                yield words[0][0], words[1], home
