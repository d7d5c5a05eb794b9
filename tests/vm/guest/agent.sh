#!/bin/sh
# Serves commands: the host writes a job's name as a line to the virtual serial port, and finds the
# command's output and its exit status as files of the job's folder. Ends when the port does.
#
# The command's output goes through pipes: a program may then open /dev/stdout or /dev/stderr anew,
# which would cut off a file and fail on the port.

export HOME=/root LANG=C.UTF-8
control=/run/vm

run_job() {
    job=$control/$1
    mkfifo "/run/$1.out" "/run/$1.err"
    cat "/run/$1.out" > "$job/stdout" &
    out=$!
    cat "/run/$1.err" > "$job/stderr" &
    err=$!
    (
        [ -z "$leaf" ] || echo 0 > "$leaf/cgroup.procs"
        unset leaf
        exec bash "$job/command" 3<&-
    ) < /dev/null > "/run/$1.out" 2> "/run/$1.err"
    status=$?
    # A process that the command left behind may hold the pipes open: it does not hold up the answer.
    (sleep 2; kill "$out" "$err") 2> /dev/null &
    limit=$!
    wait "$out" "$err" 2> /dev/null
    kill "$limit" 2> /dev/null
    rm "/run/$1.out" "/run/$1.err"
    echo "$status" > "$job/status.new"
    mv "$job/status.new" "$job/status"
}

for port in /dev/vport*p1; do
    exec 3< "$port"
done
[ ! -d /run/systemd/system ] || systemctl is-system-running --wait > "$control/systemd"
: > "$control/ready"
while read -r name <&3; do
    run_job "$name"
done
