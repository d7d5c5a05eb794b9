#!/bin/sh
# First program of the guest: loads modules, mounts the disks and the control folder, goes on with
# the next program. Runs in busybox from memory, so it keeps to the few applets that are linked there.
#
# It reads two words of the kernel command line:
#   vm.init=PATH                    the next program
#   vm.mount=TYPE,WHAT,MOUNTPOINT   another read-only mount: TYPE is ext4 or 9p (may be repeated)

fail() {
    echo "vm: stage 1: $*"
    poweroff -f
}

mount_more() {
    # shellcheck disable=SC2046,SC2086 # three words out of one
    set -- $(IFS=,; echo $1)
    mkdir -p "/root$3"
    case $1 in
    ext4) mount -t ext4 -o ro,noatime "$2" "/root$3" ;;
    9p) mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=524288,cache=loose "$2" "/root$3" ;;
    esac || fail "cannot mount $2 on $3"
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do
    insmod "$module" || fail "cannot load $module"
done < /modules/order
mount -t ext4 -o noatime /dev/vda /root || fail "cannot mount the root disk"
mount -t tmpfs -o mode=755,nodev,nosuid tmpfs /run
mkdir /run/vm
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none control /run/vm ||
    fail "cannot mount the control folder"
: > /run/vm/alive

# shellcheck disable=SC2013 # words are what is wanted
for word in $(cat /proc/cmdline); do
    case $word in
    vm.init=*) init=${word#*=} ;;
    vm.mount=*) mount_more "${word#*=}" ;;
    esac
done
for folder in proc sys dev run; do
    mount --move "/$folder" "/root/$folder"
done
exec switch_root /root "$init"
