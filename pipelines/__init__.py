"""Pure functions that compute the rows of the tables. They use no session, clock or path, and write nothing."""
