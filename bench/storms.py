"""Share of storms found, calm days with a false page, and detection delays: `python -m bench.storms [--quick]`.

Simulated silver rows of clusters with ordinary days, and of clusters that also have storms. The detection is the
product's own. This data was not used to fit thresholds, because thresholds follow from probabilities.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from schemas.written import count
from testing.simulation.detection import measure


def quantile(values: Sequence[int], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    figures = measure(
        calm_days=10_500 // scale, storms=360 // scale, groups=60, days=7 if scale == 1 else 3, seed=arguments.seed
    )
    rate = 1000 * len(figures.false) / figures.group_days
    print(f"storms        {figures.storms:8,}  found {figures.found:,}, recall {figures.found / figures.storms:.2%}")
    print(f"group-days    {figures.group_days:8,}  false pages {len(figures.false)}, {rate:.2f} per 1,000 group-days")
    for since, values in figures.delays_ms.items():
        print(f"delay since {since}: p50 {quantile(values, 0.5):.1f} s, p95 {quantile(values, 0.95):.1f} s")
    print(f"processor     {figures.seconds:8.1f}  s, {1e6 * figures.seconds / figures.group_days:.0f} us a group-day")
    for label in figures.missed:
        print(f"missed: {label.kind} of {len(label.groups)} groups, {sorted(label.groups)[:3]}")
    for storm in figures.false:
        names = ", ".join(sorted({s.started_by for s in storm.disturbances})[:5])
        size = count(len(storm.disturbances), "disturbance")
        print(f"false: {storm.scope.value} of {sorted(storm.group_ids)[:5]}, {size}, {names}")


if __name__ == "__main__":
    main()
