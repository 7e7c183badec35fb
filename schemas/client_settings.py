"""How each client library spells the settings that advice changes. Sources as in `schemas.client_libraries`, and the
configuration references of the libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from schemas.states import ClientLibrary as Library

Setting = Literal["static", "cooperative", "consumer_protocol", "session", "heartbeat", "poll_interval"]

COOPERATIVE_JAVA = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
RANGE_JAVA = "org.apache.kafka.clients.consumer.RangeAssignor"


class Spelling(NamedTuple):
    """The settings of one library as code or configuration to paste.

    `parts` has one text per setting, with `{ms}` or `{seconds}` for its value; the parts are joined by `separator` and
    put into `whole` for `{parts}`. `notes` are lines above the snippet. A setting that the library lacks is absent.
    `close` is how a program closes its consumer when it is told to stop, so that the member leaves its group.
    """

    parts: Mapping[Setting, str]
    whole: str = "{parts}"
    separator: str = "\n"
    notes: Mapping[Setting, str] = {}
    close: str = ""


def _properties(prefix: str, cooperative: str | None) -> dict[Setting, str]:
    parts: dict[Setting, str] = {
        "static": prefix + "group.instance.id=${{GROUP_INSTANCE_ID}}",
        "consumer_protocol": prefix + "group.protocol=consumer",
        "session": prefix + "session.timeout.ms={ms}",
        "heartbeat": prefix + "heartbeat.interval.ms={ms}",
        "poll_interval": prefix + "max.poll.interval.ms={ms}",
    }
    return parts if cooperative is None else parts | {"cooperative": cooperative}


def _quoted(quote: str, instance_id: str) -> dict[Setting, str]:
    """Return librdkafka's keys as entries of a dictionary; `instance_id` is the expression for the member's id."""
    entries: dict[Setting, tuple[str, str]] = {
        "static": ("group.instance.id", instance_id),
        "cooperative": ("partition.assignment.strategy", f"{quote}cooperative-sticky{quote}"),
        "consumer_protocol": ("group.protocol", f"{quote}consumer{quote}"),
        "session": ("session.timeout.ms", "{ms}"),
        "heartbeat": ("heartbeat.interval.ms", "{ms}"),
        "poll_interval": ("max.poll.interval.ms", "{ms}"),
    }
    return {setting: f"{quote}{key}{quote}: {value}" for setting, (key, value) in entries.items()}


def _only(parts: Mapping[Setting, str], *settings: Setting) -> dict[Setting, str]:
    return {setting: text for setting, text in parts.items() if setting in settings}


def _rolling(prefix: str) -> str:
    key = f"{prefix}partition.assignment.strategy"
    return (
        f"# 1. restart every member, one by one, with:\n{key}={COOPERATIVE_JAVA},{RANGE_JAVA}\n"
        f"# 2. then again, one by one, with:\n{key}={COOPERATIVE_JAVA}"
    )


SPRING = "spring.kafka.consumer.properties."
NO_CLIENT_TIMEOUTS = "# and remove partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms"
STOP_ALL = "cannot mix with eager members: stop all, change this, start"

CLOSE_JAVA = """\
Runtime.getRuntime().addShutdownHook(new Thread(() -> { consumer.wakeup(); poller.join(); }));
try { while (true) handle(consumer.poll(Duration.ofSeconds(1))); }
catch (WakeupException stop) { }
finally { consumer.close(); }"""
CLOSE_SPRING = """\
# Spring closes its consumers when the application context is closed
spring.lifecycle.timeout-per-shutdown-phase=30s"""
CLOSE_DOTNET = """\
try { while (!stop.IsCancellationRequested) Handle(consumer.Consume(stop)); }
finally { consumer.Close(); }"""
CLOSE_AIOKAFKA = """\
try:
    async for message in consumer: ...
finally:  # also on SIGTERM
    await consumer.stop()"""
CLOSE_PYTHON = """\
signal.signal(signal.SIGTERM, lambda *_: stop.set())
try:
    while not stop.is_set(): handle(consumer.poll(1.0))
finally:
    consumer.close()"""

SPELLINGS: dict[str, tuple[Library, Spelling]] = {
    "java": (
        Library.JAVA,
        Spelling(
            _properties("", _rolling("")),
            notes={"consumer_protocol": NO_CLIENT_TIMEOUTS},
            close=CLOSE_JAVA,
        ),
    ),
    "spring": (
        Library.JAVA,
        Spelling(
            _properties(SPRING, _rolling(SPRING)),
            notes={"consumer_protocol": NO_CLIENT_TIMEOUTS},
            close=CLOSE_SPRING,
        ),
    ),
    "streams": (
        Library.STREAMS,
        Spelling(_only(_properties("main.consumer.", None), "static", "session", "heartbeat", "poll_interval")),
    ),
    "connect": (
        Library.CONNECT,
        Spelling(
            _only(_properties("consumer.override.", None), "session", "heartbeat", "poll_interval"),
            notes={
                "session": "# of a sink connector; the worker allows it with connector.client.config.override.policy"
            },
        ),
    ),
    "librdkafka": (
        Library.LIBRDKAFKA,
        Spelling(
            _properties("", "partition.assignment.strategy=cooperative-sticky"),
            notes={"cooperative": f"# {STOP_ALL}", "consumer_protocol": NO_CLIENT_TIMEOUTS},
            close="/* on SIGTERM, after the poll loop */\nrd_kafka_consumer_close(rk);",
        ),
    ),
    "confluent-kafka-python": (
        Library.LIBRDKAFKA,
        Spelling(
            _quoted('"', 'os.environ["GROUP_INSTANCE_ID"]'),
            whole="Consumer({{..., {parts}}})",
            separator=", ",
            notes={"cooperative": f"# {STOP_ALL}"},
            close=CLOSE_PYTHON,
        ),
    ),
    "confluent-kafka-go": (
        Library.LIBRDKAFKA,
        Spelling(
            _quoted('"', 'os.Getenv("GROUP_INSTANCE_ID")'),
            whole="&kafka.ConfigMap{{ /* … */ {parts}}}",
            separator=", ",
            notes={"cooperative": f"// {STOP_ALL}"},
            close="defer consumer.Close() // the poll loop ends on SIGTERM: signal.NotifyContext",
        ),
    ),
    "confluent-kafka-dotnet": (
        Library.LIBRDKAFKA,
        Spelling(
            {
                "static": 'GroupInstanceId = Environment.GetEnvironmentVariable("GROUP_INSTANCE_ID")',
                "cooperative": "PartitionAssignmentStrategy = PartitionAssignmentStrategy.CooperativeSticky",
                "consumer_protocol": "GroupProtocol = GroupProtocol.Consumer",
                "session": "SessionTimeoutMs = {ms}",
                "heartbeat": "HeartbeatIntervalMs = {ms}",
                "poll_interval": "MaxPollIntervalMs = {ms}",
            },
            whole="new ConsumerConfig {{ /* … */ {parts} }}",
            separator=", ",
            notes={"cooperative": f"// {STOP_ALL}"},
            close=CLOSE_DOTNET,
        ),
    ),
    "confluent-kafka-javascript": (
        Library.CONFLUENT_KAFKA_JAVASCRIPT,
        Spelling(
            _quoted("'", "process.env.GROUP_INSTANCE_ID"),
            whole="kafka.consumer({{ kafkaJS: {{ groupId }}, {parts} }})",
            separator=", ",
            notes={
                "cooperative": f"// {STOP_ALL}",
                "consumer_protocol": "// and remove sessionTimeout, heartbeatInterval and partitionAssigners",
            },
            close="process.once('SIGTERM', () => consumer.disconnect())",
        ),
    ),
    "sarama": (
        Library.SARAMA,
        Spelling(
            {
                "static": 'cfg.Consumer.Group.InstanceId = os.Getenv("GROUP_INSTANCE_ID")',
                "cooperative": (
                    "cfg.Consumer.Group.Rebalance.GroupStrategies = "
                    "[]sarama.BalanceStrategy{{sarama.NewBalanceStrategyCooperativeSticky()}}"
                ),
                "session": "cfg.Consumer.Group.Session.Timeout = {ms} * time.Millisecond",
                "heartbeat": "cfg.Consumer.Group.Heartbeat.Interval = {ms} * time.Millisecond",
            },
            notes={
                "static": "// cfg.Version must be at least 2.3, otherwise the id is ignored",
                "cooperative": "// restart every member with this strategy before the present one, then with it alone",
            },
            close="defer group.Close() // the context of Consume ends on SIGTERM: signal.NotifyContext",
        ),
    ),
    "franz-go": (
        Library.FRANZ_GO,
        Spelling(
            {
                "static": 'kgo.InstanceID(os.Getenv("GROUP_INSTANCE_ID"))',
                "cooperative": "kgo.Balancers(kgo.CooperativeStickyBalancer())",
                "consumer_protocol": "kgo.ServerSideBalancer()",
                "session": "kgo.SessionTimeout({ms} * time.Millisecond)",
                "heartbeat": "kgo.HeartbeatInterval({ms} * time.Millisecond)",
            },
            whole="kgo.NewClient(/* … */ {parts})",
            separator=", ",
            close="defer client.Close() // the poll loop ends on SIGTERM: signal.NotifyContext",
        ),
    ),
    "kafka-go": (
        Library.KAFKA_GO,
        Spelling(
            {
                "session": "SessionTimeout: {ms} * time.Millisecond",
                "heartbeat": "HeartbeatInterval: {ms} * time.Millisecond",
            },
            whole="kafka.ReaderConfig{{ /* … */ {parts} }}",
            separator=", ",
            close="defer reader.Close() // the read loop ends on SIGTERM: signal.NotifyContext",
        ),
    ),
    "kafkajs": (
        Library.KAFKAJS,
        Spelling(
            {"session": "sessionTimeout: {ms}", "heartbeat": "heartbeatInterval: {ms}"},
            whole="kafka.consumer({{ groupId, {parts} }})",
            separator=", ",
            close="process.once('SIGTERM', () => consumer.disconnect())",
        ),
    ),
    "aiokafka": (
        Library.AIOKAFKA,
        Spelling(
            {
                "static": 'group_instance_id=os.environ["GROUP_INSTANCE_ID"]',
                "session": "session_timeout_ms={ms}",
                "heartbeat": "heartbeat_interval_ms={ms}",
                "poll_interval": "max_poll_interval_ms={ms}",
            },
            whole="AIOKafkaConsumer(..., {parts})",
            separator=", ",
            close=CLOSE_AIOKAFKA,
        ),
    ),
    "kafka-python": (
        Library.KAFKA_PYTHON,
        Spelling(
            {
                "static": 'group_instance_id=os.environ["GROUP_INSTANCE_ID"]',
                "cooperative": "partition_assignment_strategy=(CooperativeStickyAssignor,)",
                "session": "session_timeout_ms={ms}",
                "heartbeat": "heartbeat_interval_ms={ms}",
                "poll_interval": "max_poll_interval_ms={ms}",
            },
            whole="KafkaConsumer(..., {parts})",
            separator=", ",
            notes={"cooperative": f"# {STOP_ALL}"},
            close=CLOSE_PYTHON,
        ),
    ),
    "ruby-kafka": (
        Library.RUBY_KAFKA,
        Spelling(
            {"session": "session_timeout: {seconds}", "heartbeat": "heartbeat_interval: {seconds}"},
            whole="kafka.consumer(group_id: group_id, {parts})",
            separator=", ",
            close="Signal.trap('TERM') { consumer.stop }",
        ),
    ),
    "brod": (
        Library.BROD,
        Spelling(
            {
                "static": '{{group_instance_id, list_to_binary(os:getenv("GROUP_INSTANCE_ID"))}}',
                "session": "{{session_timeout_seconds, {seconds}}}",
                "heartbeat": "{{heartbeat_rate_seconds, {seconds}}}",
            },
            whole="GroupConfig = [{parts}]",
            separator=", ",
            close="brod_group_subscriber_v2:stop(Subscriber).",
        ),
    ),
}
"""By target (a library, or a language or framework on top of it): the library and how it spells the settings."""
