"""The pictures of the documents: which page of which recording each shows, and in which document."""

from __future__ import annotations

from typing import NamedTuple


class Picture(NamedTuple):
    """One web page in a window of `height` pixels.

    `file` is below docs/. With `panel`, only the panel with this heading is shown. The window must then be so high that
    the page need not scroll, because the page's head would cover a part of the panel.
    """

    file: str
    page: str
    height: int
    panel: str | None = None


README = (Picture(file="group.png", page="/group?cluster=churn&group=imports-joiner&from=all", height=860),)
"""Over `testing.warehouses.recorded`, whose marks a recording does not have. 1280 pixels wide."""

LOADER = "cluster=kafka&group=pricing-loader"
TUTORIAL = (
    Picture(file="tutorial/fleet.png", page="/?from=all", height=870),
    Picture(file="tutorial/group.png", page=f"/group?{LOADER}&from=all", height=870),
    Picture(file="tutorial/verdict.png", page=f"/rebalance?{LOADER}&incarnation=0&generation=4", height=640),
    Picture(
        file="tutorial/timeline.png",
        page=f"/rebalance?{LOADER}&incarnation=0&generation=4",
        height=3000,
        panel="Anatomy",
    ),
)
"""Over the tables of `regroup replay tests/captures/eager_churn`. 1440 pixels wide."""
