"""The sentences for readers when tables cannot be read. No sentence repeats the text of an object store's error.

Such a text can contain the id of an access key, or the string that was signed.
"""

from __future__ import annotations

from dashboards.lake.address import ObjectStore

VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
    "abfss": "AZURE_STORAGE_ACCOUNT_KEY, or AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID",
    "gs": "GOOGLE_SERVICE_ACCOUNT",
}
"""Environment variables with the credentials that deltalake reads, by scheme."""

NO_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "token request", "MissingCredentials")
REFUSED = ("401 Unauthorized", "403 Forbidden", "necessary privileges", "valid authentication credentials")
MISSING = ("NoSuchBucket", "ContainerNotFound", "404 Not Found")
ONLY_HTTPS = ("URL scheme is not allowed",)


class LakeError(Exception):
    """An existing table cannot be read. The message is a sentence for readers of the pages, with the next step."""


def is_of_store(error: Exception) -> bool:
    """Return whether an error of deltalake, Arrow or DuckDB says that a request to an object store failed."""
    return isinstance(error, OSError) or "Error performing" in str(error)


def is_object_missing(error: Exception) -> bool:
    """Return whether an object that a Delta log names has been deleted, so that there must be a newer version."""
    text = str(error)
    return is_of_store(error) and "404 Not Found" in text and "list request" not in text


def store_error(store: ObjectStore, error: Exception) -> LakeError:
    """Return the sentence for an error of an object store."""
    text, tried = str(error), f"The warehouse {store} cannot be read: "
    if any(part in text for part in NO_CREDENTIALS):
        return LakeError(f"{tried}there are no credentials. Set {VARIABLES[store.scheme]} and start the pages again.")
    if any(part in text for part in REFUSED):
        return LakeError(
            f"{tried}the store refuses these credentials. Check {VARIABLES[store.scheme]}, and that they may list and "
            "read this path."
        )
    if is_object_missing(error):
        return LakeError(
            f"{tried}a file that a table's log names is missing. Check whether a lifecycle rule of the store, or a "
            "person, deleted it."
        )
    if any(part in text for part in MISSING):
        return LakeError(f"{tried}there is no {store.bucket}. Check the address given with --warehouse.")
    if any(part in text for part in ONLY_HTTPS):
        return LakeError(f"{tried}its endpoint is http://. Use https://, or set AWS_ALLOW_HTTP=true.")
    endpoint = "AWS_ENDPOINT_URL and the network" if store.scheme == "s3" else "the network"
    return LakeError(f"{tried}the store does not answer. Check {endpoint}. The pages try again.")
