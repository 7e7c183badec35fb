"""One module a page: `render(store, state, now)` → what the address shows."""
