"""``python -m koordlet`` and the ``koordlet`` script."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and leave with its status."""
    # Importing makes much that stays and little garbage: looking for it is a tenth of the start.
    # The command line switches it on again.
    gc.disable()
    try:
        from koordlet import cli  # noqa: PLC0415 -- Ctrl-C while importing is no traceback either

        status = cli.main()
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
