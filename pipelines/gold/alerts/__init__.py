"""Alert rules, as pure functions: from rows, their freshness and the clock to the alerts that hold."""
