"""Messages of group coordinators that describe no change of a group, each with the reason why Regroup ignores it.

Sources: the same classes and releases as in `schemas.coordinator_log`, where messages of level INFO and above are
considered. A message is ignored if it contains the text.
"""

from __future__ import annotations

IGNORED_LEVELS = ("DEBUG", "TRACE")
"""Levels that only a changed configuration prints. Their further messages are the details of other lines."""

CLEANING = "work of the coordinator on offsets and tombstones, not on the group"
LIFE_OF_BROKER = "start or stop of the broker's coordinator, not of a partition"
NOTHING_TO_DO = "the coordinator says that it does nothing"
IN_RECORDS = "the group's records contain the same"
REFUSED = "the request of one client was refused and the group is unchanged"

IGNORED_LINES: dict[str, str] = {
    "Starting up.": LIFE_OF_BROKER,
    "Startup complete.": LIFE_OF_BROKER,
    "Shutting down.": LIFE_OF_BROKER,
    "Shutdown complete.": LIFE_OF_BROKER,
    "Closing coordinator runtime.": LIFE_OF_BROKER,
    "Coordinator runtime closed.": LIFE_OF_BROKER,
    "Coordinator runtime is already shutting down.": LIFE_OF_BROKER,
    " expired offsets in ": CLEANING,
    " tombstone records ": CLEANING,
    " records in ": CLEANING,
    "offsets associated with deleted partitions": CLEANING,
    "Ignored ": NOTHING_TO_DO,
    "Ignoring ": NOTHING_TO_DO,
    "Skipping ": NOTHING_TO_DO,
    "Skip downgrading ": NOTHING_TO_DO,
    "skipping ": NOTHING_TO_DO,
    "Could not fence ": NOTHING_TO_DO,
    "Received notification of ": NOTHING_TO_DO,
    "Received unexpected notification of ": NOTHING_TO_DO,
    " has already been removed ": NOTHING_TO_DO,
    "Already loading offsets and group metadata from ": NOTHING_TO_DO,
    "Group not found during initial rebalance": NOTHING_TO_DO,
    " is already active": NOTHING_TO_DO,
    " is already loading metadata": NOTHING_TO_DO,
    "Computed new metadata hash": IN_RECORDS,
    "Configuring the topology": IN_RECORDS,
    "Assignment configurations changed to": IN_RECORDS,
    "Valid topic configuration found": IN_RECORDS,
    "Topic configuration failed": IN_RECORDS,
    "Member initialized the topology": IN_RECORDS,
    "Member joined with stale topology epoch": IN_RECORDS,
    "Member joined with currently initialized topology": IN_RECORDS,
    "Scanned ": IN_RECORDS,
    "Received updated regular expressions": IN_RECORDS,
    "Received result of regular expression resolution": IN_RECORDS,
    "Couldn't update regular expression": IN_RECORDS,
    "Loaded member ": IN_RECORDS,
    # The members' current assignments show that they rest on the target, not on a refined assignment.
    "The refined assignment does not hand out as many active tasks": IN_RECORDS,
    "is not available; falling back to the default assignor": IN_RECORDS,
    "Assignment delayed due to the configured": IN_RECORDS,
    "Some topics for share group id": IN_RECORDS,
    "Existing deleting entries found in share group": IN_RECORDS,
    "Initializing topic ": IN_RECORDS,
    "Cannot compute delayed target assignment": IN_RECORDS,
    "cannot join the group because the instance id is owned by": REFUSED,
    "Unable to delete share group": REFUSED,
    "Failed to parse Consumer Protocol": REFUSED,
}
"""Part of the message → why it is ignored."""
