"""``python -m koordlet`` and the ``koordlet`` script."""

from __future__ import annotations

import gc
import os
import signal
import sys

from koordlet import late_import
from koordlet.agent import stop_signal


def main() -> None:
    """Run the command line and leave with its status."""
    # Importing makes much that stays and little garbage: looking for it is a tenth of the start.
    # The command line switches it on again.
    gc.disable()
    late_import.install()
    # Ctrl-C while importing: nothing was done yet, and not every extension module survives an
    # exception there. The command line takes this back, too. A shell's background job ignores it.
    if sys.argv[1:2] == ["run"]:
        # An agent has something to do before it ends.
        stop_signal.listen()
    elif callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        from koordlet import cli  # noqa: PLC0415 -- what is above comes before the imports

        cli.streams.prepare(sys.argv[1:])
        status = cli.main()
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
