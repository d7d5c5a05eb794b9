"""``python -m koordlet`` and the ``koordlet`` script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its status."""
    try:
        from koordlet import cli  # noqa: PLC0415 -- Ctrl-C while importing is no traceback either

        status = cli.main()
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
