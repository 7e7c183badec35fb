"""What is known of the client programs of members: their library, and what they measured themselves."""
