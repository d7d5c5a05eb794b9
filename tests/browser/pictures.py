"""The pictures of the running product in ``docs/images``: ``make pictures``.

Covers: the console beside the demo on its recorded machine, as a reader sees it after a minute.
Does not cover: pictures of machines (``tests.kit.pictures``), which need nothing that runs.

The demo runs without root, so that the picture shows the same machine wherever it is taken.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright import sync_api

REPO = Path(__file__).parents[2]
IMAGES = REPO / "docs" / "images"
#: File, width, height, colours, what is done before.
PICTURES = (
    ("console.png", 1440, 1100, "light", ""),
    ("console-dark.png", 1440, 900, "dark", "#pod=koordlet-demo/ls&cpu=3"),
)
#: Of the demo's story: three calm and busy times.
_SECONDS = 75
_ADDRESS = re.compile(r"http://[0-9.]+:\d+/")


@contextlib.contextmanager
def demo() -> Iterator[str]:
    """The address of its console."""
    words = [sys.executable, "-P", "-m", "koordlet", "run", "--demo", "--http", "127.0.0.1:0"]
    if os.geteuid() == 0:
        words = ["unshare", "--user", *words]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "XDG_RUNTIME_DIR": folder}
        running = subprocess.Popen(
            [*words, "--state-dir", folder],
            cwd=REPO,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            lines = iter(running.stdout or ())
            yield next(match[0] for line in lines if (match := _ADDRESS.search(line)))
        finally:
            running.terminate()
            running.communicate(timeout=30)


def main() -> None:
    """Take all."""
    program = shutil.which("chromium")
    if program is None:
        sys.exit("pictures: no chromium (fix: apt-get install chromium)")
    with demo() as address, sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        pages = []
        for name, width, height, colours, fragment in PICTURES:
            context = browser.new_context(viewport={"width": width, "height": height})
            page = context.new_page()
            page.emulate_media(color_scheme="dark" if colours == "dark" else "light")
            page.goto(address + fragment)
            page.wait_for_selector("body[data-ready=yes]")
            pages.append((name, page))
        pages[0][1].wait_for_timeout(1000 * _SECONDS)
        # One picture has the demo's comparison, the other one what is below it.
        pages[1][1].click("#demo .fold")
        pages[1][1].evaluate("scrollTo(0, 0)")
        for name, page in pages:
            page.screenshot(path=IMAGES / name)
            sys.stdout.write(f"docs/images/{name}\n")
        browser.close()


if __name__ == "__main__":
    main()
