"""Probabilities with which chance alone explains a pattern."""

from __future__ import annotations

from math import exp, fsum, lgamma, log, log1p


def binomial(count: int, tries: int, chance: float) -> float:
    """Return the probability of at least `count` hits in `tries` that each hit with the probability `chance` < 1."""
    if count <= 0 or chance <= 0:
        return float(count <= 0)
    logs = (
        log_combinations(tries, k) + k * log(chance) + (tries - k) * log1p(-chance) for k in range(count, tries + 1)
    )
    return fsum(map(exp, logs))


def log_combinations(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose `k` of `n`; minus infinity if there is none."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) if 0 <= k <= n else float("-inf")
