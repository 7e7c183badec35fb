"""Names of the topics that KIP-848 and share groups know by id alone.

Stated by the group itself: `ConsumerGroupPartitionMetadata` (up to 4.0), `ShareGroupStatePartitionMetadata`, and the
commits of brokers from 4.1 on; or by the cluster's metadata, where a poll saw it. Otherwise by elimination: an id in a
target assignment is one of the topics to which its owner subscribes, and no two ids of one target assignment are the
same topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from pipelines.silver.coordinator_assigned.snapshot import Snapshot
from pipelines.silver.history import History, Position, Record, Resource

STATING = ("topics", "initializingTopics", "initializedTopics", "deletingTopics")
BEFORE: Position = (-1, -1)


class NamedTopics(NamedTuple):
    """A statement of a topic's name, and where it is."""

    position: Position
    topic_id: str
    name: str


class TopicNames:
    """Topic id → name, the id itself where nothing tells the name. `asked` are the ids that were.

    Commits count up to `end`, where the group left the protocol: later ones rebuild nothing (`restarts.committing`).
    """

    def __init__(self, history: History, end: Position, known: Snapshot | None) -> None:
        self.asked: set[str] = set()
        self._records, self._known = history.records, known
        told = [NamedTopics(position, i, name) for i, (position, name) in history.commits.topic_names(end).items()]
        told += _stated(history.records)
        if known is not None:
            told += [NamedTopics(BEFORE, i, name) for i, name in known.names.items()]
        self._told = sorted(told)
        self._names = dict(history.topic_names)
        self._names.update((each.topic_id, each.name) for each in self._told)
        for _ in _eliminations(self._records, self._names, (), known):
            pass

    def __getitem__(self, topic_id: str) -> str:
        self.asked.add(topic_id)
        return self._names.get(topic_id, topic_id)

    def resources(self, stated: Iterable[Mapping[str, Any]]) -> frozenset[Resource]:
        """Topic partitions as a record lists them."""
        return frozenset((self[t["topicId"]], index) for t in stated for index in t["partitions"])

    def before(self, position: Position) -> dict[str, str]:
        """What the history before a position tells by itself, whatever polls and later records know."""
        return {i: named.name for i, named in self._since.items() if named.position < position}

    @cached_property
    def _since(self) -> dict[str, NamedTopics]:
        """By topic id the first that names it, each told or found out when it is. Groups that never rest do not ask."""
        found: dict[str, NamedTopics] = {}
        for each in _eliminations(self._records, {}, self._told, self._known):
            found.setdefault(each.topic_id, each)
        return found


def _stated(records: Iterable[Record]) -> Iterator[NamedTopics]:
    for record in records:
        if record.value is not None and record.kind.endswith("PartitionMetadata"):
            for name in STATING:
                for topic in record.value.get(name, ()):
                    yield NamedTopics(record.position, topic["topicId"], topic["topicName"])


def _eliminations(
    records: Iterable[Record], names: dict[str, str], told: Iterable[NamedTopics], known: Snapshot | None
) -> Iterator[NamedTopics]:
    """Adds to `names` what is told, when it is, and every id for which one topic is left; yields what it adds."""
    subscribed: dict[str, frozenset[str]] = {}
    regexes: dict[str, tuple[str, ...]] = {}
    matched: dict[str, frozenset[str]] = {}
    targets: dict[str, frozenset[str]] = {}
    if known is not None:
        subscribed = {member: seat.topics for member, seat in known.stand.seats.items()}
        regexes = {member: tuple(filter(None, (seat.regex,))) for member, seat in known.stand.seats.items()}
        matched = dict(known.matched)
        targets = {member: frozenset(ids) for member, ids in known.stand.target_ids.items()}
    handed_out = set().union(*targets.values())
    statements = iter(told)
    following = next(statements, None)
    for record in records:
        while following is not None and following.position <= record.position:
            names[following.topic_id] = following.name
            yield following
            following = next(statements, None)
        member, value = record.member_id or "", record.value or {}
        if "subscribedTopicNames" in value:
            subscribed[member] = frozenset(value["subscribedTopicNames"])
            regexes[member] = tuple(filter(None, (value.get("subscribedTopicRegex"),)))
        elif record.kind.endswith("RegularExpression") and value:
            matched[record.expression or ""] = frozenset(value["topics"])
        elif record.kind.endswith("TargetAssignmentMember"):
            targets[member] = frozenset(t["topicId"] for t in value.get("topicPartitions", ()))
            handed_out |= targets[member]
        # Large groups state a target for each of thousands of members, epoch by epoch.
        elif record.kind.endswith("TargetAssignmentMetadata") and value and handed_out - names.keys():
            choices = _choices(subscribed, regexes, matched, targets)
            for topic_id, name in _eliminated(choices, names):
                names[topic_id] = name
                yield NamedTopics(record.position, topic_id, name)


def _choices(
    subscribed: Mapping[str, frozenset[str]],
    regexes: Mapping[str, tuple[str, ...]],
    matched: Mapping[str, frozenset[str]],
    targets: Mapping[str, frozenset[str]],
) -> dict[str, frozenset[str]]:
    """Every id that is handed out to members of which it is known what they consume, and the topics it can be."""
    choices: dict[str, frozenset[str]] = {}
    for owner, ids in targets.items():
        if owner in subscribed and all(r in matched for r in regexes[owner]):
            topics = subscribed[owner].union(*(matched[r] for r in regexes[owner]))
            for topic_id in ids:
                choices[topic_id] = choices.get(topic_id, topics) & topics
    return choices


def _eliminated(choices: Mapping[str, frozenset[str]], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every id for which one topic is left."""
    known = {topic_id: names[topic_id] for topic_id in choices if topic_id in names}
    while True:
        taken = set(known.values())
        found = {i: topics - taken for i, topics in choices.items() if i not in known and len(topics - taken) == 1}
        if not found:
            return
        topic_id, (name,) = next(iter(sorted(found.items())))
        known[topic_id] = name
        yield topic_id, name
