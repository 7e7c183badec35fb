"""Documents about one rebalance, episode or storm: what happened, why, what it cost, and what to change."""
