"""What is looked for on every page: words, panels that stay apart, text to read, hostile names.

Covers: questions to a page in Chromium. Does not cover: the pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Page

Theme = Literal["light", "dark"]

#: The lightest contrast of text that people with weak eyes can read (WCAG 2.2, 1.4.3).
CONTRAST = 4.5
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</td></tr><script>alert(2)</script>",
    "'\"><svg onload=alert(3)>",
    "javascript:alert(4)",
)
#: What turns the words after it around, what reads from right to left, and what is very long.
UNRULY = ("\u202egnitruh", "\u05d0\u05d1\u05d2", "\U0001f525\u200d\U0001f984", "a" * 253)


def load(page: Page, address: str, fragment: str = "") -> None:
    """The page at an address, anew, until it has drawn its first state."""
    page.goto("about:blank")
    page.goto(f"http://{address}/{fragment}")
    page.wait_for_selector("body[data-ready=yes]")


def expect_text(page: Page, selector: str, words: str) -> None:
    """Wait until an element says something."""
    page.wait_for_function(
        "([one, words]) => document.querySelector(one).textContent.includes(words)",
        arg=[selector, words],
    )


def panels_apart(page: Page, *, panels: int) -> None:
    """No panel covers another or lets something stick out, and nothing is wider than the page."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes: list[dict[str, float]] = page.evaluate(
        "[...document.querySelectorAll('section')].map((s) => s.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == panels
    assert overflowing(page) == []
    for n, box in enumerate(boxes):
        for other in boxes[n + 1 :]:
            apart = (
                box["right"] <= other["left"] + 1
                or other["right"] <= box["left"] + 1
                or box["bottom"] <= other["top"] + 1
                or other["bottom"] <= box["top"] + 1
            )
            assert apart, (box, other)


def overflowing(page: Page) -> list[str]:
    """Elements whose content sticks out of them or of their panel, except where one may scroll."""
    names: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("section, section *:not(svg *)")].filter((one) => {
          if (one.closest(".scroll") || !one.getClientRects().length) return false;
          const panel = one.closest("section").getBoundingClientRect();
          const box = one.getBoundingClientRect();
          const hidden = getComputedStyle(one).overflowX !== "visible";
          return box.right > panel.right + 1 || box.left < panel.left - 1
            || (!hidden && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0);
        }).map((one) => `${one.tagName}.${one.className} in ${one.closest("section").id}`)"""
    )
    return names


def unreadable(page: Page, *, pixels: float = 11) -> list[str]:
    """Elements whose own text is smaller, or too like what is painted behind it."""
    names: list[str] = page.evaluate(
        """([pixels, contrast]) => {
          const parts = (c) => c.match(/[0-9.]+/g).map(Number);
          const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
            .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
            .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
          const behind = (one) => {
            for (let e = one; e; e = e.parentElement) {
              const c = parts(getComputedStyle(e).backgroundColor);
              if (c.length === 3 || c[3] > 0.99) return c;
            }
            return [255, 255, 255];
          };
          const bad = new Set();
          for (const one of document.querySelectorAll("body *")) {
            const written = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            if (!written || !one.getClientRects().length) continue;
            const style = getComputedStyle(one), size = parseFloat(style.fontSize);
            // Cells of a crowd have no text: their patterns tell owners apart.
            if (!size) continue;
            const a = light(parts(style.color)), b = light(behind(one));
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            const place = one.closest("[id]") || document.body;
            const where = `${one.tagName}#${one.id}.${one.className} in ${place.id}`;
            if (size < pixels) bad.add(`${where}: ${size} pixels`);
            if (ratio < contrast) bad.add(`${where}: contrast ${ratio.toFixed(1)}`);
          }
          return [...bad];
        }""",
        [pixels, CONTRAST],
    )
    return names
