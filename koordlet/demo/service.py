"""The demo's latency-sensitive service. Run alone: ``python service.py MOST`` with two pipes.

Covers: answering requests from standard input to standard output, more workers while some wait.
Does not cover: asking (``load``).

A request is when it was due (seconds, monotonic) and the CPU time that its answer needs; the answer
repeats when it was due. Both are shorter than what a pipe takes at once, so workers share them.
Workers are forked when requests wait, so they are born in the cgroup of the service. All end with
the pipe: when whoever asks is gone.
"""

from __future__ import annotations

import array
import fcntl
import os
import select
import struct
import sys
import termios
import time

REQUEST = struct.Struct("dd")
ANSWER = struct.Struct("d")
#: Requests that wait for each worker before there is another one.
_QUEUE = 1
#: Seconds without a request after which a worker that was forked ends.
_IDLE = 1.0


def main(most: int) -> None:
    """Serve requests until standard input closes."""
    mine, crowd = os.getpid(), 0
    while True:
        if not select.select([0], [], [], _IDLE)[0]:
            if os.getpid() != mine:
                return
            continue
        if os.getpid() == mine:
            crowd -= _reaped()
            if crowd < most - 1 and _waiting() > _QUEUE * (1 + crowd):
                crowd += 1
                os.fork()
        request = os.read(0, REQUEST.size)
        if len(request) < REQUEST.size:
            return
        due, work = REQUEST.unpack(request)
        end = time.thread_time() + work
        while time.thread_time() < end:
            pass
        try:
            os.write(1, ANSWER.pack(due))
        except BrokenPipeError:
            return


def _waiting() -> int:
    size = array.array("i", [0])
    fcntl.ioctl(0, termios.FIONREAD, size)
    return size[0] // REQUEST.size


def _reaped() -> int:
    gone = 0
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            gone += 1
    except ChildProcessError:
        pass
    return gone


if __name__ == "__main__":
    main(int(sys.argv[1]))
