"""A real broker whose plugin sends what its clients push (KIP-714) to an address."""
