#!/bin/bash
# Builds a kernel with core scheduling for the emulated machines: Debian's source, as few drivers as
# they need, nothing as a module. Minutes; needs gcc, make, bc, flex, bison, libelf-dev, and apt.
#
#   tests/vm/cores_kernel.sh FOLDER        afterwards: KOORDLET_CORES_KERNEL=FOLDER/vmlinux
set -euo pipefail

[ $# = 1 ] || { printf 'usage: %s FOLDER\n' "$0" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
wanted() {
  local on
  # What the point of it is; processors and memory; the disk, the shares and the way in and out;
  # what systemd-less Debian and the agent live on.
  for on in SCHED_SMT SCHED_CORE SCHED_MC SMP 64BIT NUMA ACPI X86_64_ACPI_NUMA X86_X2APIC \
    HOTPLUG_CPU HYPERVISOR_GUEST PARAVIRT PVH PCI PCI_MSI PCIEPORTBUS PCI_MMCONFIG X86_PM_TIMER \
    HIGH_RES_TIMERS NO_HZ_IDLE PREEMPT_VOLUNTARY EXPERT KALLSYMS PRINTK BUG TTY SERIAL_8250 \
    SERIAL_8250_CONSOLE BLK_DEV_INITRD RD_GZIP BINFMT_ELF BINFMT_SCRIPT MULTIUSER BLOCK BLK_DEV \
    EXT4_FS VIRTIO_MENU VIRTIO VIRTIO_PCI VIRTIO_BLK VIRTIO_CONSOLE HW_RANDOM HW_RANDOM_VIRTIO \
    NET UNIX INET PACKET NETDEVICES NETWORK_FILESYSTEMS NET_9P NET_9P_VIRTIO 9P_FS CRYPTO \
    CRYPTO_CRC32C PROC_FS PROC_SYSCTL PROC_CHILDREN SYSFS TMPFS TMPFS_XATTR DEVTMPFS SHMEM \
    POSIX_TIMERS FUTEX EPOLL SIGNALFD TIMERFD EVENTFD AIO ADVISE_SYSCALLS MEMBARRIER \
    FILE_LOCKING INOTIFY_USER FANOTIFY SYSVIPC POSIX_MQUEUE IO_URING SECCOMP KCMP CONNECTOR \
    CGROUPS CGROUP_SCHED FAIR_GROUP_SCHED CFS_BANDWIDTH CPUSETS MEMCG BLK_CGROUP CGROUP_PIDS \
    CGROUP_FREEZER CGROUP_CPUACCT PSI SCHEDSTATS SCHED_INFO TASKSTATS TASK_DELAY_ACCT \
    NAMESPACES PID_NS NET_NS UTS_NS IPC_NS USER_NS KERNEL_XZ; do printf 'CONFIG_%s=y\n' "$on"; done
  printf 'CONFIG_NR_CPUS=32\nCONFIG_SPECULATION_MITIGATIONS=n\n'
}

apt-get download -q linux-source-6.1
dpkg-deb -x linux-source-6.1_*.deb source
tar -xJf source/usr/src/linux-source-6.1.tar.xz
cd linux-source-6.1
wanted >fragment
make -s allnoconfig
scripts/kconfig/merge_config.sh -m .config fragment >merge.log
make -s olddefconfig
grep -qx CONFIG_SCHED_CORE=y .config
make -s -j"$(nproc)" vmlinux
cp vmlinux ..
