"""A large fleet built and analyzed with tables in a folder and elsewhere, for `bench growth --fleet`."""
