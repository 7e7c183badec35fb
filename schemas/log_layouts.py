"""How brokers lay out a log line, as log4j conversion patterns."""

from __future__ import annotations

LAYOUTS: dict[str, str] = {
    # config/log4j.properties up to 3.9, config/log4j2.yaml from 4.0; Confluent's images take the same.
    "default": "[%d] %p %m (%c)%n",
    "confluent": "[%d] %p %m (%c:%L)%n",
    # %d without milliseconds: an event is then known to the second.
    "strimzi": "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n",
    "strimzi-old": "%d{ISO8601} %p %m (%c) [%t]%n",
    # config/connect-log4j.properties since 2.3 and config/connect-log4j2.yaml.
    "connect": "[%d] %p %X{connector.context}%m (%c:%L)%n",
    "connect-old": "[%d] %p %m (%c:%L)%n",
}
"""Name to pattern. A setting may also hold a log4j pattern itself, or a regular expression with the named groups
`at`, `logger` and `message`, which is the way to take off a prefix that a container runtime writes before the line."""
