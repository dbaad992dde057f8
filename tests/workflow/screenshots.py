"""Pictures of a run's report: ``python tests/workflow/screenshots.py [REPORT] [FOLDER]``.

Writes ``report.png``, the first screen at 1440 x 1000 pixels, and ``report-phone.png``, the same at
390 x 844, into the folder; ``--whole`` the whole page in pieces of a screen's height, numbered.
``make screenshots`` takes ``results/report.html`` and writes into ``results/reference``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from browser import Browser

SIZES = {"report": (1440, 1000), "report-phone": (390, 844)}


def shoot(browser: Browser, page: Path, folder: Path, whole: bool = False) -> list[Path]:
    """Write the pictures of a page; their paths."""
    written = []
    for name, (width, height) in SIZES.items():
        browser.open(page, width, height)
        written.append(_write(browser, folder / f"{name}.png"))
        total = browser.run("return document.documentElement.scrollHeight") if whole else 0
        for number, top in enumerate(range(height, total, height), 2):
            browser.run("scrollTo({top: arguments[0], behavior: 'instant'})", top)
            written.append(_write(browser, folder / f"{name}-{number:03d}.png"))
    return written


def _write(browser: Browser, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert browser.driver.save_screenshot(str(path)), f"{path} cannot be written"
    return path


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report", nargs="?", type=Path, default=Path("results/report.html"))
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results/reference"))
    parser.add_argument("--whole", action="store_true", help="every screen, not the first alone")
    given = parser.parse_args()
    if not given.report.is_file():
        parser.error(f"there is no {given.report}: run snakemake --cores all first")
    browser = Browser()
    try:
        for path in shoot(browser, given.report, given.folder, given.whole):
            print(path)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
