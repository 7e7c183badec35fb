"""One module per page, with a function `render(store, state, now)` that returns the page for an address."""
