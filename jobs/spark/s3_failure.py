"""One sentence for a store of tables that cannot be reached, instead of the traces of Java.

No sentence repeats the text of an error, which can name a key or what was signed with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dashboards.lake.errors import MISSING, NO_CREDENTIALS, ONLY_HTTPS, REFUSED
from jobs.config.errors import UserError
from jobs.spark.s3 import is_in_s3

CREDENTIALS = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
REJECTED = (
    f"the store refuses these credentials. Check {CREDENTIALS}, and that they may list, read, write and delete there"
)
AWAY = "the store does not answer. Check AWS_ENDPOINT_URL and the network, and start again; nothing is lost"

CLASS_MISSING = "S3AFileSystem not found"
OF_STORE = (CLASS_MISSING, "fs.s3a.", "software.amazon.awssdk", "s3a://", "Error performing")
"""One of these is in every error of Hadoop or deltalake about S3."""

CAUSES = (
    ((CLASS_MISSING,), "this Spark has no hadoop-aws. Start it with that jar, in the version of its Hadoop"),
    ((*NO_CREDENTIALS, "NoAuthWithAWSException"), f"there are no credentials. Set {CREDENTIALS}"),
    ((*REFUSED, "Status Code: 403", "Status Code: 401"), REJECTED),
    ((*MISSING, "UnknownStoreException"), "the bucket does not exist. Create it, or correct the address"),
    (ONLY_HTTPS, "its endpoint is http://. Use https://, or set AWS_ALLOW_HTTP=true"),
    (("Unable to execute HTTP request", "ConnectException", "SocketTimeoutException", "Error performing"), AWAY),
)
"""Parts of the texts of these errors, and what is wrong and to be done."""


def failure(what: str, error: BaseException) -> UserError | None:
    """Return why `what` is in a store that cannot be used; None if the error has another cause."""
    text = str(error)
    if not any(part in text for part in OF_STORE):
        return None
    why = next((why for parts, why in CAUSES if any(part in text for part in parts)), None)
    return None if why is None else UserError(f"{what} cannot be used: {why}.")


@contextmanager
def store_named(there: str | None) -> Iterator[None]:
    """Raise a `UserError` if the store of tables at this location caused an exception in the block."""
    try:
        yield
    except Exception as error:
        if there is None or not is_in_s3(there) or isinstance(error, UserError):
            raise
        if (found := failure(f"The tables in {there}", error)) is None:
            raise
        raise found from None
