"""Makes the pictures of README and docs from the bundled example: docs/pictures/*.png.

    python scripts/make_pictures.py [FOLDER]

Reports and pages are made by the commands that a user types, and photographed by Chromium. Scores,
orders and layout are the same each time; fonts are those of the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
EXAMPLE = HERE / "examples" / "four-bots.jsonl"
DIALEVAL = [sys.executable, "-m", "dialeval"]
METRICS = ("judge", "bleu", "coherence", "full", "consistency", "mme-crs")
RATED = "lisbon/broken"
SIZE = {"width": 1120, "height": 800}
LARGEST = 150_000


def main() -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None or find_spec("playwright") is None:
        lacking = "playwright (pip install playwright)" if program else "Chromium"
        print(f"no pictures made: {lacking} is not installed")
        return
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "docs" / "pictures"
    out.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        work = Path(folder)
        run = work / "runs" / "four-bots"
        chosen = [word for name in METRICS for word in ("-m", name)]
        dialeval(work, "score", str(EXAMPLE), *chosen, "-o", str(run))
        (run / "history.jsonl").unlink()  # the time of day would be in the picture
        dialeval(work, "report", str(run), "-o", "report.html")
        report = (work / "report.html").as_uri()
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        picture(browser, report, out / "report.png")
        picture(browser, report, out / "report-dialogue-dark.png", dark=True, first=open_dialogue)
        with serving(work, "serve", str(run.parent)) as started:
            picture(browser, started["address"], out / "page.png", first=sort_by_coherence)
        with serving(work, "rate", str(run), "--raters", "1", "--checks", "0") as started:
            link = started["raters"]["rater-1"]
            picture(browser, f"{link}/1", out / "rating.png", first=rate_two)
        browser.close()
    for path in sorted(out.glob("*.png")):
        size = path.stat().st_size
        print(f"{path.name}: {size / 1000:.0f} kB")
        if size > LARGEST:
            sys.exit(f"{path.name} is larger than {LARGEST / 1000:.0f} kB")


def dialeval(folder: Path, *words: str) -> None:
    subprocess.run(
        [*DIALEVAL, *words, "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[dict[str, Any]]:
    """What the command prints when its pages can be opened; it is stopped at the end."""
    command = [*DIALEVAL, *words, "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def picture(
    browser: Any, address: str, path: Path, *, dark: bool = False, first: Any = lambda page: None
) -> None:
    page = browser.new_page(
        viewport=SIZE, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page.goto(address)
    first(page)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=path, animations="disabled", caret="hide")
    page.close()


def open_dialogue(page: Any) -> None:
    card = page.locator(".card", has_text=RATED)
    page.evaluate("place => { location.hash = place }", card.get_attribute("id"))
    card.locator(".score").first.wait_for()


def sort_by_coherence(page: Any) -> None:
    page.get_by_role("link", name="four-bots").click()
    page.get_by_role("link", name="coherence").click()
    page.wait_for_url("**sort=coherence**")


def rate_two(page: Any) -> None:
    page.keyboard.press("4")
    page.keyboard.press("5")


if __name__ == "__main__":
    main()
