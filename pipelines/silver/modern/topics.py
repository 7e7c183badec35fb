"""Names of the topics that KIP-848 and share groups know by id alone.

Stated by the group itself: `ConsumerGroupPartitionMetadata` (up to 4.0), `ShareGroupStatePartitionMetadata`, and the
commits of brokers from 4.1 on; or by the cluster's metadata, where a poll saw it. Otherwise by elimination: an id in a
target assignment is one of the topics to which its owner subscribes, and no two ids of one target assignment are the
same topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.silver.history import History, Position, Record, Resource

STATING = ("topics", "initializingTopics", "initializedTopics", "deletingTopics")


class TopicNames:
    """Topic id → name, the id itself where nothing tells the name.

    Commits count up to `end`, where the group left the protocol: later ones rebuild nothing (`restarts.committing`).
    """

    def __init__(self, history: History, end: Position) -> None:
        self._names = dict(history.topic_names) | history.commits.topic_names(end)
        for topic in _stated(history.records):
            self._names[topic["topicId"]] = topic["topicName"]
        for choices in _choices(history.records, self._names):
            _eliminate(choices, self._names)

    def __getitem__(self, topic_id: str) -> str:
        return self._names.get(topic_id, topic_id)

    def resources(self, stated: Iterable[Mapping[str, Any]]) -> frozenset[Resource]:
        """Topic partitions as a record lists them."""
        return frozenset((self[t["topicId"]], index) for t in stated for index in t["partitions"])


def _stated(records: Iterable[Record]) -> Iterator[Mapping[str, Any]]:
    for record in records:
        if record.value is not None and record.kind.endswith("PartitionMetadata"):
            for name in STATING:
                yield from record.value.get(name, ())


def _choices(records: Iterable[Record], names: Mapping[str, str]) -> Iterator[dict[str, set[str]]]:
    """Of each target assignment with an id that has no name yet: every id and the topics it can be."""
    subscribed: dict[str, set[str]] = {}
    regexes: dict[str, tuple[str, ...]] = {}
    matched: dict[str, set[str]] = {}
    targets: dict[str, set[str]] = {}
    handed_out: set[str] = set()
    for record in records:
        member, value = record.member_id or "", record.value or {}
        if "subscribedTopicNames" in value:
            subscribed[member] = set(value["subscribedTopicNames"])
            regexes[member] = tuple(filter(None, (value.get("subscribedTopicRegex"),)))
        elif record.kind.endswith("RegularExpression") and value:
            matched[record.expression or ""] = set(value["topics"])
        elif record.kind.endswith("TargetAssignmentMember"):
            targets[member] = {t["topicId"] for t in value.get("topicPartitions", ())}
            handed_out |= targets[member]
        # Large groups state a target for each of thousands of members, epoch by epoch.
        elif record.kind.endswith("TargetAssignmentMetadata") and value and handed_out - names.keys():
            choices: dict[str, set[str]] = {}
            for owner, ids in targets.items():
                known = owner in subscribed and all(r in matched for r in regexes[owner])
                if known:
                    topics = subscribed[owner].union(*(matched[r] for r in regexes[owner]))
                    for topic_id in ids:
                        choices[topic_id] = choices.get(topic_id, topics) & topics
            if choices.keys() - names.keys():
                yield choices


def _eliminate(choices: dict[str, set[str]], names: dict[str, str]) -> None:
    """Name every id for which one topic is left."""
    left = dict(choices)
    while True:
        taken = {names[topic_id] for topic_id in choices if topic_id in names}
        found = {i: topics - taken for i, topics in left.items() if i not in names and len(topics - taken) == 1}
        if not found:
            return
        topic_id, topics = next(iter(sorted(found.items())))
        names[topic_id] = topics.pop()
