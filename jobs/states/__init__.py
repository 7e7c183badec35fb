"""The parts of a warehouse in an object store that are not tables: the lock of its writer, checkpoints and states."""
