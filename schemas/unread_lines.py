"""What to do about log lines that may be lifecycle lines but are not known."""

from __future__ import annotations

from schemas.states import QuarantineReason

UNREAD_REASONS = (QuarantineReason.UNKNOWN_LAYOUT, QuarantineReason.UNKNOWN_WORDING)
"""Reasons of lines that may be lifecycle lines. `quarantine` has only a few lines of each batch, with their number."""

REMEDIES: dict[tuple[str, bool], str] = {
    (QuarantineReason.UNKNOWN_LAYOUT, True): (
        "Set layout of this file in [[clusters.NAME.logs]] to the log4j pattern of the program that writes it, or to a "
        "regular expression with the groups at, logger and message."
    ),
    (QuarantineReason.UNKNOWN_LAYOUT, False): (
        "Set events_layout in [clusters.NAME] to the log4j pattern of the brokers, or to a regular expression with the "
        "groups at, logger and message."
    ),
    (QuarantineReason.UNKNOWN_WORDING, True): "No setting helps: update Regroup, or report the line.",
    (QuarantineReason.UNKNOWN_WORDING, False): "No setting helps: update Regroup, or report the line.",
}
"""(reason, whether the source is a file) → what to do."""
