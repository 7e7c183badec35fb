"""When to wake somebody: rows, how far they are known, and the clock in; the alerts that hold out. No effects."""
