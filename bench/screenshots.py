"""The README's screenshot, from a recording: `python -m bench.screenshots [--out docs]`. Needs chromium."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from shutil import which

from playwright.sync_api import ViewportSize, sync_playwright

from testing.serving import BROWSER, serving
from testing.warehouses.recorded import rows_of, store

CLUSTERS = {"churn": "eager_churn"}
PICTURES = {"group": "/group?cluster=churn&group=imports-joiner&from=all"}
SIZE = ViewportSize(width=1280, height=860)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        store(Path(folder), rows_of(CLUSTERS))
        with serving(Path(folder)) as address, sync_playwright() as playwright:
            path = which("chromium") or which("chromium-browser")
            browser = playwright.chromium.launch(executable_path=path, args=list(BROWSER))
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            for name, place in PICTURES.items():
                page.goto(address + place)
                page.wait_for_selector(".panel .main-svg")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=out / f"{name}.png")
                print(out / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main()
