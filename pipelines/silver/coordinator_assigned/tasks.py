"""Commits of a Streams group (KIP-1071) by task: a task commits for the source topics of its subtopology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.silver.history import CommitHistory, Position, Record, Resource

BEFORE: Position = (-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSources:
    """Where the commits of tasks are.

    `topics` are the source topics by subtopology, according to its first record. `chosen` is the topic of each task
    (subtopology, partition) that has a commit: the topic of its first one, so that later commits do not change it.
    """

    topics: Mapping[str, list[str]] = field(default_factory=dict)
    chosen: Mapping[Resource, str] = field(default_factory=dict)

    def read(self, records: Iterable[Record], commits: CommitHistory) -> TaskSources:
        """Return what is known with these records and commits, which follow."""
        topics = dict(self.topics)
        for record in records:
            if record.kind == "StreamsGroupTopology" and record.value is not None:
                for part in record.value["subtopologies"]:
                    sources = [*part["sourceTopics"], *(t["name"] for t in part["repartitionSourceTopics"])]
                    topics.setdefault(part["subtopologyId"], sorted(sources))
        chosen = {(name, p): topic for name, of in topics.items() for p, topic in commits.first_topics(of).items()}
        return TaskSources(topics=topics, chosen=chosen | dict(self.chosen))

    def of_tasks(self, commits: CommitHistory) -> CommitHistory:
        """Return the commits by task."""
        return commits.renamed({task: (topic, task[1]) for task, topic in self.chosen.items()})

    def before(self, position: Position, commits: CommitHistory, known: TaskSources) -> TaskSources:
        """Return what was known before a position; `commits` are by task, and `known` is from before they begin."""
        chosen = {
            task: topic
            for task, topic in self.chosen.items()
            if task in known.chosen or commits.first(task, BEFORE, position) is not None
        }
        return TaskSources(topics=self.topics, chosen=chosen)

    def to_fields(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "topics": dict(self.topics),
            "chosen": [[*task, topic] for task, topic in sorted(self.chosen.items())],
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> TaskSources:
        """Return what `to_fields` wrote."""
        return cls(topics=fields["topics"], chosen={(name, index): topic for name, index, topic in fields["chosen"]})
