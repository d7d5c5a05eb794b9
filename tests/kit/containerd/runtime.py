"""containerd as a process that leaves nothing behind.

Covers: its configuration, its start, the image, its end; NRI's socket where a test wants plugins.
Does not cover: what is asked of it (``cri``).

It gets a mount and a process namespace of its own. Its shims leave their parent, and put sockets
below /run whatever they are told: here both end when ``unshare`` ends, and the kernel sees to it.
Processes have other numbers inside: read a container's from its ``cgroup.procs`` (``pids``).

In a virtual machine that ends with the test it may have the machine to itself (``bare``), which the
systemd driver needs: runc tells systemd the numbers of processes, through a socket below /run.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kit import deadline
from tests.kit.containerd import cri, image, programs

#: ``native`` copies layers: no overlay on overlay. The switch for oom scores: a sandbox asks for
#: -998, which takes CAP_SYS_RESOURCE. The path of ``opt`` is made at start: not on this machine.
_CONFIG = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image}"
restrict_oom_score_adj = true
disable_tcp_service = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{folder}/cni"
conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{program}"
SystemdCgroup = {systemd}
[plugins."io.containerd.nri.v1.nri"]
disable = {no_nri}
disable_connections = false
socket_path = "{folder}/nri.sock"
plugin_path = "{folder}/nri/plugins"
plugin_config_path = "{folder}/nri/conf.d"
"""
#: crun 1.8 takes specifications of version 1.0 alone, and containerd 1.7 writes a newer number.
_CRUN = """\
#!/bin/sh
for word; do
  [ "$last" = --bundle ] &&
    sed -i 's/"ociVersion":"[^"]*"/"ociVersion":"1.0.2"/' "$word/config.json"
  last=$word
done
LD_LIBRARY_PATH={bundle.libraries} exec {bundle.crun} "$@"
"""
#: Nor does it take a hybrid machine whose v2 hierarchy has controllers: containerd does not see it.
_INSIDE = """
mount -t tmpfs koordlet-test /run || exit 1
[ {oci} = runc ] || umount /sys/fs/cgroup/unified || exit 1
"$@"; exit $?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A containerd that runs."""

    folder: Path
    client: cri.Client

    @property
    def nri_socket(self) -> Path:
        """Where NRI plugins connect, if it was started with NRI."""
        return self.folder / "nri.sock"

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "log").read_text(errors="replace")


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    nri: bool = False,
    bare: bool = False,
    systemd: bool = False,
    oci: str = "runc",
    newer: Path | None = None,
) -> Iterator[Runtime]:
    """A runtime with the image imported; at the end all its pods and processes are gone.

    ``systemd``: groups are units of systemd's; only with ``bare``. ``oci`` is the program
    that makes containers: runc or crun. ``newer``: a folder with another containerd and its shim.
    """
    bundle = programs.kept()
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        _CONFIG.format(
            folder=folder,
            image=image.NAME,
            program=bundle.runc if oci == "runc" else _crun(folder / "crun"),
            no_nri=_toml(not nri),
            systemd=_toml(systemd),
        )
    )
    bin_folder = newer or bundle.bin
    usual = os.environ.get("PATH", "/usr/bin:/bin")
    path = f"{bin_folder}:{bundle.runc.parent}:{usual}:/usr/sbin:/sbin"
    config = str(folder / "config.toml")
    with (folder / "log").open("wb") as log, cri.Client(str(folder / "containerd.sock")) as client:
        process = subprocess.Popen(
            [*(() if bare else contained(oci)), str(bin_folder / "containerd"), "--config", config],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PATH": path},
        )
        runtime = Runtime(folder=folder, client=client)
        try:
            _make_ready(runtime, process, bundle)
            yield runtime
        except BaseException as error:
            error.add_note(runtime.log[-3000:])
            raise
        finally:
            _end(runtime, process)


def contained(oci: str) -> tuple[str, ...]:
    """What a daemon is started by that shall leave nothing behind."""
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    return (*namespaces, "sh", "-c", _INSIDE.format(oci=oci), "sh")


def _crun(path: Path) -> Path:
    """crun, as this containerd can use it."""
    path.write_text(_CRUN.format(bundle=programs.kept("crun")))
    path.chmod(0o755)
    return path


def _toml(truth: bool) -> str:
    return "true" if truth else "false"


def _make_ready(
    runtime: Runtime, process: subprocess.Popen[bytes], bundle: programs.Programs
) -> None:
    archive, socket = runtime.folder / "image.tar", runtime.folder / "containerd.sock"
    image.write(bundle.busybox, archive)

    def up() -> bool:
        assert process.poll() is None, "containerd has ended"
        return socket.exists()

    deadline.until(up, "containerd's socket")
    words = ("--address", str(socket), "--namespace", "k8s.io", "images", "import")
    subprocess.run(
        [str(bundle.ctr), *words, "--snapshotter", "native", str(archive)],
        check=True,
        capture_output=True,
        timeout=deadline.PATIENCE,
    )
    deadline.until(runtime.client.ready, "the image is known to the runtime interface")


def _end(runtime: Runtime, process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(RuntimeError):
        for sandbox in runtime.client.pods():
            runtime.client.end_pod(sandbox)
    # A signal to unshare kills the first process of the namespace, and the kernel all the others.
    process.kill()
    process.wait()
