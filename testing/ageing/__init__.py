"""Memory and files of processes over many batches, measured from outside and from within Python processes."""
