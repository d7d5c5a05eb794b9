"""The Debian packages and kernel modules that the harness lives on, as data.

Covers: what the host must have, what goes into the guest, what the guest's kernel may load.
Does not cover: fetching and unpacking them (``image``).
"""

from __future__ import annotations

#: On the host (``python -m tests.vm packages`` prints them, CI installs them).
HOST = (
    "qemu-system-x86",  # the emulator; TCG is part of it
    "e2fsprogs",  # mke2fs -d makes a disk image of a folder, without mounting anything
    "kmod",  # depmod: which module needs which
    "dpkg",  # dpkg-deb unpacks packages
    "tar",
    "xz-utils",
    "zstd",  # what newer kernels are packed with
    "util-linux",  # setpriv: the emulator dies with the process that started it
)

#: In the guest, with everything they depend on (recommended packages stay out).
GUEST = (
    *("base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "diffutils"),
    *("findutils", "grep", "gzip", "hostname", "libc-bin", "passwd", "sed", "tar"),
    *("login", "mount", "util-linux", "util-linux-extra", "procps", "kmod", "busybox-static"),
    *("systemd", "systemd-sysv", "dbus", "udev", "iproute2"),
    *("python3", "libpython3-stdlib", "libstdc++6"),
    *("hwloc-nox", "numactl", "stress-ng", "strace"),
)

#: Modules that are loaded before the root disk is mounted; their dependencies come along.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "ext4", "crc32c_generic", "9p")
BOOT_MODULES_LATE = ("9pnet_virtio",)

#: Parts of the kernel's module tree that the guest keeps (the rest drives real hardware). What a
#: kernel has not is built in, or elsewhere.
MODULE_TREES = (
    "arch/x86/kernel",
    "crypto",
    "drivers/block",
    "drivers/char/virtio_console.ko",
    "drivers/cpufreq",
    "drivers/net/dummy.ko",
    "drivers/net/ifb.ko",
    "drivers/net/veth.ko",
    "drivers/virtio",
    "fs/9p",
    "fs/autofs",
    "fs/ext4",
    "fs/fscache",
    "fs/fuse",
    "fs/jbd2",
    "fs/mbcache.ko",
    "fs/netfs",
    "fs/overlayfs",
    "lib",
    "net/802",
    "net/9p",
    "net/bridge",
    "net/core",
    "net/ipv4",
    "net/ipv6",
    "net/llc",
    "net/netfilter",
    "net/packet",
    "net/sched",
)
