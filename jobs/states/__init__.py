"""What is no table of a warehouse in an object store: the lock of its writer, and checkpoints and states."""
