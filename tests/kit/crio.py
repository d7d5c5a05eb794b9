"""CRI-O as a process of a machine with systemd that ends with the test.

Covers: its configuration, its start, the registry that it pulls the image from, NRI's socket.
Does not cover: a machine that goes on: its groups, mounts and sockets below /run stay.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kit import deadline
from tests.kit.containerd import cri, image

#: Where the registry listens.
_PORT = 5000
_CONFIG = """\
[crio]
root = "{folder}/storage"
runroot = "/run/crio-storage"
storage_driver = "vfs"
log_dir = "{folder}/logs"
version_file = "{folder}/version"
clean_shutdown_file = "{folder}/clean.shutdown"
[crio.api]
listen = "{folder}/crio.sock"
[crio.runtime]
cgroup_manager = "systemd"
disable_hostport_mapping = true
pinns_path = "{programs}/pinns"
default_runtime = "runc"
apparmor_profile = "unconfined"
container_exits_dir = "/run/crio/exits"
container_attach_socket_dir = "/run/crio"
namespaces_dir = "/run"
[crio.runtime.runtimes.runc]
runtime_path = "{root}/usr/sbin/runc"
runtime_type = "oci"
runtime_root = "/run/runc"
monitor_path = "{root}/usr/bin/conmon"
monitor_cgroup = "system.slice"
monitor_env = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH={libraries}"]
[crio.image]
pause_image = "{image}"
pause_command = "/bin/busybox sleep 86400"
signature_policy = "{folder}/policy.json"
[crio.network]
network_dir = "{folder}/cni"
plugin_dirs = ["{folder}/cni"]
[crio.nri]
enable_nri = true
nri_listen = "{folder}/nri.sock"
nri_plugin_dir = "{folder}/nri/plugins"
nri_plugin_config_dir = "{folder}/nri/conf.d"
"""
_REGISTRIES = """\
[[registry]]
prefix = "{repository}"
location = "127.0.0.1:{port}/{name}"
insecure = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What the lab of a real cluster has."""

    #: The folder of crio and pinns.
    bin: Path
    #: Debian's packages, unpacked: runc, conmon, busybox, libraries.
    root: Path
    #: The lab itself: its registry.
    lab: Path

    @property
    def libraries(self) -> str:
        """What the dynamic linker must be told of."""
        return ":".join(str(self.root / part / "x86_64-linux-gnu") for part in ("usr/lib", "lib"))


@contextlib.contextmanager
def running(folder: Path, programs: Programs) -> Iterator[None]:
    """It serves, and pulls the one image when it is asked to; its log is in the folder."""
    folder.mkdir(parents=True)
    (folder / "cni").mkdir()
    repository, _, tag = image.NAME.partition(":")
    name = repository.rpartition("/")[2]
    files = {
        "crio.toml": _CONFIG.format(
            folder=folder,
            programs=programs.bin,
            root=programs.root,
            libraries=programs.libraries,
            image=image.NAME,
        ),
        "registries.conf": _REGISTRIES.format(repository=repository, name=name, port=_PORT),
        "policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}',
    }
    for file, text in files.items():
        (folder / file).write_text(text)
    own = [programs.bin, programs.root / "usr/sbin", programs.root / "usr/bin"]
    env = {
        **os.environ,
        "PATH": ":".join([*map(str, own), os.environ["PATH"], "/usr/sbin:/sbin"]),
        "LD_LIBRARY_PATH": programs.libraries,
        "CONTAINER_REGISTRIES_CONF": str(folder / "registries.conf"),
    }
    words = ["crio", "--config", str(folder / "crio.toml"), "--config-dir", ""]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_registry(folder / "images", f"{name}:{tag}", programs))
        client = stack.enter_context(cri.Client(str(folder / "crio.sock")))
        log = stack.enter_context((folder / "log").open("ab"))
        process = subprocess.Popen(words, env=env, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.kill)

        def serves() -> bool:
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            # It listens long before it answers.
            with contextlib.suppress(RuntimeError):
                return client.pods() == []
            return False

        deadline.until(serves, "CRI-O serves")
        yield


@contextlib.contextmanager
def _registry(folder: Path, name: str, programs: Programs) -> Iterator[None]:
    """The lab's, with the one image in it."""
    sys.path.insert(0, str(programs.lab))
    registry = importlib.import_module("registry")
    registry.add(folder, name, [registry.busybox(programs.root / "bin/busybox")], image.SLEEP)
    process = subprocess.Popen(
        [sys.executable, str(programs.lab / "registry.py"), str(folder), str(_PORT)]
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()
