"""The pictures of the README and the tutorial: `python -m bench.screenshots [--out docs]`. Needs chromium."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shutil import which

from playwright.sync_api import Browser, sync_playwright

from testing.pictures import README, TUTORIAL, Picture
from testing.recordings import CAPTURES
from testing.serving import BROWSER, serving
from testing.warehouses.recorded import rows_of, store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = which("chromium") or which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=list(BROWSER))
        readme, tutorial = Path(folder, "readme"), Path(folder, "tutorial")
        store(readme, rows_of({"churn": "eager_churn"}))
        take(browser, readme, README, width=1280, out=out)
        command = [sys.executable, "-m", "jobs.cli", "replay", str(CAPTURES / "eager_churn")]
        subprocess.run([*command, "--warehouse", str(tutorial)], check=True)
        take(browser, tutorial, TUTORIAL, width=1440, out=out)
        browser.close()


def take(browser: Browser, warehouse: Path, pictures: Sequence[Picture], *, width: int, out: Path) -> None:
    """Write the pictures of the pages over a warehouse below `out`."""
    with serving(warehouse) as address:
        page = browser.new_page(color_scheme="light")
        for picture in pictures:
            page.set_viewport_size({"width": width, "height": picture.height})
            page.goto(address + picture.page)
            page.wait_for_selector(".panel .main-svg", state="attached")
            page.wait_for_load_state("networkidle")
            panel = page.locator(".panel", has_text=picture.panel).first if picture.panel else page
            panel.screenshot(path=out / picture.file)
            print(out / picture.file)
        page.close()


if __name__ == "__main__":
    main()
