#!/bin/sh
# PID 1 of a guest without systemd: mounts what a system has, then serves commands.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
groups=/sys/fs/cgroup

mount_v1() {
    # One hierarchy for each controller, with the pairs and links that systemd makes.
    mount -t tmpfs -o mode=755 tmpfs "$groups"
    for set in cpuset cpu,cpuacct memory blkio pids devices freezer hugetlb perf_event \
        net_cls,net_prio rdma misc; do
        mkdir "$groups/$set"
        mount -t cgroup -o "$set" cgroup "$groups/$set" || { rmdir "$groups/$set"; continue; }
        case $set in
        *,*) ln -s "$set" "$groups/${set%,*}"; ln -s "$set" "$groups/${set#*,}" ;;
        esac
    done
    mkdir "$groups/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$groups/systemd"
}

mount_v2() {
    mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 "$1"
}

# shellcheck disable=SC1091 # the harness writes it for each machine; it sets cgroup
. /run/vm/settings
mkdir -p /dev/pts /dev/shm
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
ip link set lo up
echo vm > /proc/sys/kernel/hostname

# shellcheck disable=SC2154 # set by the settings
case $cgroup in
v1) mount_v1 ;;
hybrid) mount_v1; mkdir "$groups/unified"; mount_v2 "$groups/unified" ;;
v2)
    mount_v2 "$groups"
    # shellcheck disable=SC2013 # words are what is wanted
    for controller in $(cat "$groups/cgroup.controllers"); do
        echo "+$controller" > "$groups/cgroup.subtree_control"
    done
    mkdir "$groups/command"
    export leaf="$groups/command"
    ;;
esac
sh /run/vm/agent.sh
busybox poweroff -f
