"""The built-in configuration as a file, for starts that need no validation.

python -m tools.docs.built_in > koordlet/config/built_in.json
"""

from __future__ import annotations

import json
import sys

from koordlet.config import plain, schema


def text() -> str:
    """What the file says."""
    return json.dumps(plain.packed(schema.defaults()), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
