"""``python -m koordlet`` and the ``koordlet`` script."""

from __future__ import annotations

import sys

from koordlet import cli


def main() -> None:
    """Run the command line and leave with its status."""
    sys.exit(cli.main())


if __name__ == "__main__":
    main()
