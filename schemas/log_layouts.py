"""Layouts of the brokers' and Connect workers' log lines, as log4j conversion patterns."""

from __future__ import annotations

LAYOUTS: dict[str, str] = {
    # config/log4j.properties until 3.9, config/log4j2.yaml since 4.0; Confluent's images use the same layout.
    "default": "[%d] %p %m (%c)%n",
    "confluent": "[%d] %p %m (%c:%L)%n",
    # This %d has no milliseconds, so the time of an event is known to the second only.
    "strimzi": "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n",
    "strimzi-old": "%d{ISO8601} %p %m (%c) [%t]%n",
    # config/connect-log4j.properties since 2.3, and config/connect-log4j2.yaml.
    "connect": "[%d] %p %X{connector.context}%m (%c:%L)%n",
    "connect-old": "[%d] %p %m (%c:%L)%n",
}
"""Layout name → pattern. A setting may also hold a log4j pattern, or a regular expression with the named groups `at`,
`logger` and `message`. Such an expression can skip a prefix that a container runtime writes before each line."""
