"""The exceptions for a commit that another commit to the same table preceded."""

from __future__ import annotations

from delta import exceptions
from deltalake.exceptions import CommitFailedError

CONFLICTS = (
    exceptions.ConcurrentAppendException,
    exceptions.ConcurrentDeleteDeleteException,
    exceptions.ConcurrentDeleteReadException,
    exceptions.ConcurrentTransactionException,
    exceptions.ConcurrentWriteException,
    exceptions.MetadataChangedException,
    exceptions.ProtocolChangedException,
    CommitFailedError,
)
"""Delta's exceptions for a commit that came second. They have no common base class."""
