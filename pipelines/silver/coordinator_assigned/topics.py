"""Names of the topics whose ids KIP-848 and share groups use.

Sources of a name are the group's records `ConsumerGroupPartitionMetadata` (up to 4.0) and
`ShareGroupStatePartitionMetadata`, commits of brokers since 4.1, and polls of the cluster's metadata. Without these,
names follow by elimination: an id in a target assignment is one of the topics that its owner subscribes to, and no two
ids of one target assignment are the same topic.
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
    """A topic id with its name, and the position at which they appear."""

    position: Position
    topic_id: str
    name: str


class TopicNames:
    """Topic id → name, or the id itself if the name is unknown. `asked` contains the ids that were looked up.

    Commits count up to `end`, where the group left the protocol, because later ones cause no rebuild
    (`resume_points.committing`).
    """

    def __init__(self, history: History, end: Position, known: Snapshot | None) -> None:
        self.asked: set[str] = set()
        self._records, self._known = history.records, known
        statements = [
            NamedTopics(position, i, name) for i, (position, name) in history.commits.topic_names(end).items()
        ]
        statements += _recorded(history.records)
        if known is not None:
            statements += [NamedTopics(BEFORE, i, name) for i, name in known.names.items()]
        self._statements = sorted(statements)
        self._names = dict(history.topic_names)
        self._names.update((each.topic_id, each.name) for each in self._statements)
        for _ in _eliminations(self._records, self._names, (), known):
            pass

    def __getitem__(self, topic_id: str) -> str:
        self.asked.add(topic_id)
        return self._names.get(topic_id, topic_id)

    def resources(self, listed: Iterable[Mapping[str, Any]]) -> frozenset[Resource]:
        """Return topic partitions of a record as resources."""
        return frozenset((self[t["topicId"]], index) for t in listed for index in t["partitions"])

    def before(self, position: Position) -> dict[str, str]:
        """Return the names that follow from the history before a position alone, without polls and later records."""
        return {i: named.name for i, named in self._since.items() if named.position < position}

    @cached_property
    def _since(self) -> dict[str, NamedTopics]:
        """Topic id → the first record or elimination that names it.

        It is computed only if a quiescent point needs it.
        """
        found: dict[str, NamedTopics] = {}
        for each in _eliminations(self._records, {}, self._statements, self._known):
            found.setdefault(each.topic_id, each)
        return found


def _recorded(records: Iterable[Record]) -> Iterator[NamedTopics]:
    for record in records:
        if record.value is not None and record.kind.endswith("PartitionMetadata"):
            for name in STATING:
                for topic in record.value.get(name, ()):
                    yield NamedTopics(record.position, topic["topicId"], topic["topicName"])


def _eliminations(
    records: Iterable[Record], names: dict[str, str], statements: Iterable[NamedTopics], known: Snapshot | None
) -> Iterator[NamedTopics]:
    """Add names to `names` in the order of the records, and yield each one.

    A name is added when a statement contains it, or when only one topic is left for its id.
    """
    subscribed: dict[str, frozenset[str]] = {}
    regexes: dict[str, tuple[str, ...]] = {}
    matched: dict[str, frozenset[str]] = {}
    targets: dict[str, frozenset[str]] = {}
    if known is not None:
        subscribed = {m: member.topics for m, member in known.coordinator.members.items()}
        regexes = {m: tuple(filter(None, (member.regex,))) for m, member in known.coordinator.members.items()}
        matched = dict(known.matched)
        targets = {member: frozenset(ids) for member, ids in known.coordinator.target_ids.items()}
    handed_out = set().union(*targets.values())
    pending = iter(statements)
    following = next(pending, None)
    for record in records:
        while following is not None and following.position <= record.position:
            names[following.topic_id] = following.name
            yield following
            following = next(pending, None)
        member, value = record.member_id or "", record.value or {}
        if "subscribedTopicNames" in value:
            subscribed[member] = frozenset(value["subscribedTopicNames"])
            regexes[member] = tuple(filter(None, (value.get("subscribedTopicRegex"),)))
        elif record.kind.endswith("RegularExpression") and value:
            matched[record.expression or ""] = frozenset(value["topics"])
        elif record.kind.endswith("TargetAssignmentMember"):
            targets[member] = frozenset(t["topicId"] for t in value.get("topicPartitions", ()))
            handed_out |= targets[member]
        # Large groups write a target for each of thousands of members in every epoch.
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
    """Return the possible topics of each assigned id, if the subscriptions of its owners are known."""
    choices: dict[str, frozenset[str]] = {}
    for owner, ids in targets.items():
        if owner in subscribed and all(r in matched for r in regexes[owner]):
            topics = subscribed[owner].union(*(matched[r] for r in regexes[owner]))
            for topic_id in ids:
                choices[topic_id] = choices.get(topic_id, topics) & topics
    return choices


def _eliminated(choices: Mapping[str, frozenset[str]], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield every id for which only one topic is left, with that topic."""
    known = {topic_id: names[topic_id] for topic_id in choices if topic_id in names}
    while True:
        taken = set(known.values())
        found = {i: topics - taken for i, topics in choices.items() if i not in known and len(topics - taken) == 1}
        if not found:
            return
        topic_id, (name,) = next(iter(sorted(found.items())))
        known[topic_id] = name
        yield topic_id, name
