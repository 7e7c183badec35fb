"""Commits of a Streams group (KIP-1071) by task: a task commits for the source topics of its subtopology."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.silver.history import CommitHistory, Record


def tasks_commits(commits: CommitHistory, records: Iterable[Record]) -> CommitHistory:
    """Return commits by (subtopology, partition): those of its first source topic, by name, that has commits."""
    topics: dict[str, list[str]] = {}
    for record in records:
        if record.kind == "StreamsGroupTopology" and record.value is not None:
            for part in record.value["subtopologies"]:
                sources = [*part["sourceTopics"], *(t["name"] for t in part["repartitionSourceTopics"])]
                topics[part["subtopologyId"]] = sorted({*topics.get(part["subtopologyId"], ()), *sources})
    return commits.renamed(topics)
