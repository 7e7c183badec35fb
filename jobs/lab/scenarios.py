"""The lab's scenarios by name: their groups, brokers and scripts."""

from __future__ import annotations

from difflib import get_close_matches

from jobs.config.errors import UserError
from jobs.lab import churn, failures, incidents
from jobs.lab.client_members import ClientPlan, GoPlan, NodePlan, PythonPlan
from jobs.lab.members import ConsumerPlan
from jobs.lab.other_members import JavaPlan, RegistryPlan
from jobs.lab.scenario import Scenario
from jobs.setup.java import javac
from schemas.states import ClientLibrary

DEFAULT = "churn"


def chosen(names: str) -> tuple[Scenario, list[str]]:
    """Return a comma-separated list of scenarios as one scenario, and a sentence for each thing that cannot run here.

    Without a Java compiler, scenarios with Java programs are left out. Groups of other libraries are left out one by
    one.

    Raises:
        UserError: a name is unknown, or none of the scenarios can run.
    """
    wanted = names.split(",")
    for name in wanted:
        if name not in SCENARIOS:
            near = get_close_matches(name, SCENARIOS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(SCENARIOS)}."
            raise UserError(f"There is no lab scenario {name!r}: {hint}")
    left_out = [name for name in wanted if SCENARIOS[name].needs_compiler and javac() is None]
    playing = [SCENARIOS[name] for name in dict.fromkeys(wanted) if name not in left_out]
    if not playing:
        raise UserError(f"{', '.join(left_out)} need a Java compiler: install a JDK 17 or 21, not only its runtime.")
    overrides: dict[str, object] = {}
    for scenario in playing:
        overrides |= scenario.overrides
    groups = [group for scenario in playing for group in scenario.groups]
    lacking = {plan.group_id: plan.lacking() for plan, _ in groups if isinstance(plan, ClientPlan)}
    merged = Scenario(
        groups=[group for group in groups if not lacking.get(group[0].group_id)],
        overrides=overrides,
        brokers=max(scenario.brokers for scenario in playing),
        incidents=[incident for scenario in playing for incident in scenario.incidents],
    )
    sentences = [_without_compiler(left_out)] if left_out else []
    sentences += filter(None, lacking.values())
    if not merged.groups:
        raise UserError(f"None of the lab's groups can run: {'; '.join(sentences)}.")
    return merged, sentences


def _without_compiler(left_out: list[str]) -> str:
    return f"without {', '.join(left_out)}: their programs need a Java compiler, but only a Java runtime is installed"


def _quick(kind: str) -> dict[str, object]:
    """Return broker properties for session timeouts of 6 s; the default minimum is 45 s."""
    times = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_500}
    return {f"group.{kind}.{least}{name}": ms for name, ms in times.items() for least in ("", "min.")}


CHURN = Scenario(
    groups=[
        (ConsumerPlan(group_id="orders-enricher", topic="orders", partitions=6, members=3), churn.deploys),
        (
            ConsumerPlan(
                group_id="payments-settler", topic="payments", partitions=6, members=3, assignor="cooperative-sticky"
            ),
            churn.deploys,
        ),
        (
            ConsumerPlan(
                group_id="inventory-sync",
                topic="inventory",
                partitions=4,
                members=2,
                is_static=True,
                session_timeout_ms=10_000,
                auto_commit_interval_ms=2_000,
            ),
            churn.static_bounces,
        ),
        (
            ConsumerPlan(
                group_id="search-indexer", topic="products", partitions=4, members=2, auto_commit_interval_ms=2_000
            ),
            churn.crashes,
        ),
        (
            ConsumerPlan(
                group_id="report-builder",
                topic="reports",
                partitions=4,
                members=2,
                max_poll_interval_ms=6_000,
                auto_commit_interval_ms=5_000,
            ),
            churn.slow_polls,
        ),
    ]
)
KIP848 = Scenario(
    groups=[
        (
            ConsumerPlan(group_id="basket-pricer", topic="baskets", partitions=6, members=3, group_protocol="consumer"),
            churn.comings_and_goings,
        ),
        (
            ConsumerPlan(
                group_id="invoice-archiver",
                topic="invoices",
                partitions=4,
                members=2,
                group_protocol="consumer",
                is_static=True,
            ),
            churn.static_bounces,
        ),
    ],
    overrides=_quick("consumer"),
)
MIGRATION = Scenario(
    groups=[
        (ConsumerPlan(group_id="refund-auditor", topic="refunds", partitions=6, members=3), churn.migration),
    ],
    overrides=_quick("consumer"),
)
SETTINGS = Scenario(
    groups=[
        (
            ConsumerPlan(group_id="rates-writer", topic="rates", partitions=24, members=6, session_timeout_ms=10_000),
            churn.new_setting(1.5, is_static=True),
        ),
        (
            ConsumerPlan(group_id="rates-reader", topic="quotes-r", partitions=6, members=3),
            churn.new_setting(14.0, is_static=True, session_timeout_ms=30_000),
        ),
        (
            ConsumerPlan(
                group_id="rates-auditor", topic="audits-r", partitions=12, members=3, session_timeout_ms=10_000
            ),
            churn.new_setting(1.5, group_protocol="consumer"),
        ),
    ],
    overrides=_quick("consumer"),
)
ASSIGNORS = "org.apache.kafka.clients.consumer."
PLAIN = {
    "group.id": "{group_id}",
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 2_000,
    "auto.commit.interval.ms": 1_000,
    "auto.offset.reset": "earliest",
}
JAVA = Scenario(
    groups=[
        (
            JavaPlan(
                group_id=group_id,
                topic=topic,
                partitions=6,
                members=3,
                program="PlainConsumer",
                settings=PLAIN | {"partition.assignment.strategy": ASSIGNORS + assignor},
            ),
            churn.comings_and_goings,
        )
        for group_id, topic, assignor in (
            ("claims-reader", "claims", "RangeAssignor"),
            ("quotes-reader", "quotes", "CooperativeStickyAssignor"),
        )
    ]
)
STREAMS_APP = {
    "application.id": "{group_id}",
    "state.dir": "{folder}/state/{client_id}",
    "application.server": "localhost:{port}",
    "num.stream.threads": 1,
    "num.standby.replicas": 1,
    "commit.interval.ms": 1_000,
    "processing.guarantee": "at_least_once",
    "auto.offset.reset": "earliest",
}
STREAMS = Scenario(
    groups=[
        (
            JavaPlan(
                group_id="clicks-counter",
                topic="clicks",
                partitions=4,
                members=3,
                program="StreamsApp",
                table="streams",
                settings=STREAMS_APP
                | {
                    "session.timeout.ms": 6_000,
                    "heartbeat.interval.ms": 2_000,
                    "probing.rebalance.interval.ms": 60_000,
                },
            ),
            churn.comings_and_goings,
        ),
        (
            JavaPlan(
                group_id="visits-counter",
                topic="visits",
                partitions=4,
                members=3,
                program="StreamsApp",
                table="streams",
                settings=STREAMS_APP | {"group.protocol": "streams"},
            ),
            churn.comings_and_goings,
        ),
        (
            JavaPlan(
                group_id="trips-counter",
                topic="trips",
                partitions=4,
                members=2,
                program="StreamsApp",
                table="streams",
                settings=STREAMS_APP | {"group.protocol": "streams", "group.instance.id": "{client_id}"},
            ),
            churn.static_bounces,
        ),
    ],
    # An application needs four seconds to start, so a static member that is to be back in time needs a longer session.
    overrides=_quick("streams") | {"group.streams.session.timeout.ms": 15_000, "group.streams.num.standby.replicas": 1},
)
CONNECT = Scenario(groups=[(failures.CONNECT_WORKERS, churn.worker_losses)])
SHARE = Scenario(
    groups=[
        (
            JavaPlan(
                group_id="mail-senders",
                topic="mails",
                partitions=4,
                members=3,
                program="ShareMember",
                settings={"group.id": "{group_id}"},
            ),
            churn.comings_and_goings,
        ),
    ],
    overrides=_quick("share"),
)
REGISTRY = Scenario(
    groups=[
        (RegistryPlan(group_id="schema-registry", topic="_schemas", partitions=1, members=3), churn.comings_and_goings),
    ]
)
REASSIGNMENT = Scenario(
    groups=[
        (ConsumerPlan(group_id="ledger-reader", topic="postings", partitions=6, members=2), churn.deploys),
    ],
    brokers=3,
    incidents=[incidents.reassignments],
)
STORMS = Scenario(
    groups=[
        (ConsumerPlan(group_id="cart-cleaner", topic="carts", partitions=6, members=3), churn.one_deploy),
        (ConsumerPlan(group_id="label-printer", topic="labels", partitions=6, members=3), churn.crash_loop),
        (
            ConsumerPlan(
                group_id="receipt-writer", topic="receipts", partitions=6, members=3, max_poll_interval_ms=6_000
            ),
            churn.poll_loop,
        ),
    ]
)
OUTAGE = Scenario(
    groups=[
        *(
            (
                ConsumerPlan(
                    group_id=group_id,
                    topic=topic,
                    partitions=4,
                    members=2,
                    assignor=assignor,
                    group_protocol=group_protocol,
                ),
                churn.host_pause,
            )
            for group_id, topic, assignor, group_protocol in (
                ("rack7-billing", "bills", "range", "classic"),
                ("rack7-mailer", "mails", "cooperative-sticky", "classic"),
                ("rack7-ledger", "entries", "range", "classic"),
                ("rack7-search", "documents", "range", "consumer"),
            )
        ),
        (ConsumerPlan(group_id="rack2-audit", topic="audits", partitions=4, members=2), churn.staggered_joins),
        (ConsumerPlan(group_id="rack2-export", topic="exports", partitions=4, members=2), churn.one_deploy),
    ],
    overrides=_quick("consumer"),
)
CLIENTS = Scenario(
    groups=[
        (
            GoPlan(group_id="fares-franz", topic="fares-f", partitions=6, members=3, library=ClientLibrary.FRANZ_GO),
            churn.leaves_kills_and_blocks,
        ),
        (
            GoPlan(group_id="fares-sarama", topic="fares-s", partitions=6, members=3, library=ClientLibrary.SARAMA),
            churn.leaves_kills_and_blocks,
        ),
        (
            GoPlan(group_id="fares-kafkago", topic="fares-g", partitions=6, members=3, library=ClientLibrary.KAFKA_GO),
            churn.leaves_kills_and_blocks,
        ),
        (
            NodePlan(group_id="fares-kafkajs", topic="fares-j", partitions=4, members=2, library=ClientLibrary.KAFKAJS),
            churn.leaves_kills_and_blocks,
        ),
        (
            PythonPlan(
                group_id="fares-aiokafka",
                topic="fares-a",
                partitions=4,
                members=2,
                library=ClientLibrary.AIOKAFKA,
                max_poll_interval_ms=8_000,
            ),
            churn.leaves_kills_and_blocks,
        ),
        (
            PythonPlan(
                group_id="fares-kafkapy",
                topic="fares-p",
                partitions=4,
                members=2,
                library=ClientLibrary.KAFKA_PYTHON,
                max_poll_interval_ms=8_000,
            ),
            churn.leaves_kills_and_blocks,
        ),
    ]
)
SCENARIOS: dict[str, Scenario] = {
    DEFAULT: CHURN,
    "kip848": KIP848,
    "migration": MIGRATION,
    "settings": SETTINGS,
    "java": JAVA,
    "streams": STREAMS,
    "connect": CONNECT,
    "share": SHARE,
    "registry": REGISTRY,
    "reassignment": REASSIGNMENT,
    "failover": failures.FAILOVER,
    "sessions": failures.SESSIONS,
    "offsets": failures.OFFSETS,
    "lost": failures.LOST,
    "stuck": failures.STUCK,
    "mismatch": failures.MISMATCH,
    "storms": STORMS,
    "outage": OUTAGE,
    "clients": CLIENTS,
}
