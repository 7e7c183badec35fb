"""Layouts of the brokers' and Connect workers' log lines, as log4j conversion patterns, and the prefixes that container
runtimes and shippers write in front of such a line.

Sources: Kafka's and Confluent's log configuration, Strimzi's default logging, the manuals of log4j, of Kubernetes (CRI
log format, `kubectl logs`), of Docker (json-file, compose), of stern and of systemd, and RFC 3164 and RFC 5424 of
syslog.
"""

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
    # Kafka's and Confluent's layouts without brackets.
    "plain": "%d %p %m (%c)%n",
    "plain-with-line": "%d %p %m (%c:%L)%n",
}
"""Layout name → pattern. A setting may also hold a log4j pattern, or a regular expression with the named groups `at`,
`logger` and `message`."""

DETECTED_IN_BRACKETS = ("default", "connect")
"""Layouts that are recognized without a setting, for lines that begin with `[`. `connect` includes `confluent`."""

DETECTED = ("plain", "plain-with-line", "strimzi-old", "strimzi")
"""Layouts that are recognized without a setting, for all other lines. The layouts with the full name of the logger at
the end come first: a name chosen by a client cannot imitate them.
"""

WITHOUT_TIME = ("%p %m (%c)%n", "%p %m (%c:%L)%n", "%p [%t] %c{1}:%L - %m%n")
"""Layouts of lines that have their time only from a container runtime."""

_NAME = r"[A-Za-z0-9][\w.-]{0,252}"
_COLOR_CODE = r"\x1b\[[\d;]{0,20}m"
_COLOR = rf"(?:{_COLOR_CODE})?"
_DAY = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{6})?"
_FULL = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})? [A-Z\d+:-]{1,9}"
_SECONDS = r"\d{10}\.\d{6}|\[ {0,10}\d{1,10}\.\d{6}\]"
_STAMP = r"(?P<{}>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d))"
_POD = rf"{_COLOR}[a-z\d.]{{1,63}}(?:-[a-z\d.]{{1,63}}){{1,20}}{_COLOR}"
_LABEL = rf"{_COLOR}[a-z\d-]{{1,63}}{_COLOR}"

LINE_PREFIXES = (
    _STAMP.format("cri") + r" (?:stdout|stderr) [FP] ",
    rf"{_COLOR}{_NAME} {{0,100}}\|{_COLOR} ?",
    rf"\[(?:pod/)?{_NAME}(?:/{_NAME}){{1,2}}\] ",
    rf"(?:{_LABEL} )?{_POD} {_LABEL} (?=\[?\d{{4}}-\d\d-\d\d[ T]|{{)",
    rf"(?:<\d{{1,3}}>)?(?:{_DAY}|{_FULL}|{_SECONDS}) {_NAME} [\w./@-]{{1,100}}(?:\[\d{{1,10}}\])?: ",
    rf"<\d{{1,3}}>1 {_STAMP.format('syslog')} \S{{1,255}} \S{{1,48}} \S{{1,128}} \S{{1,32}} (?:-|\[[^\]]{{0,500}}\]) ",
    _STAMP.format("journal") + rf" {_NAME} [\w./@-]{{1,100}}(?:\[\d{{1,10}}\])?: ",
    _STAMP.format("kubectl") + " ",
    rf"(?:{_COLOR_CODE}){{1,4}}",
    "\ufeff",
)
"""Regular expressions of the prefixes: CRI, docker compose, `kubectl logs --prefix`, stern (namespace, pod and
container), syslog and journald (`short`, `short-precise`, `short-full`, `short-unix`, `short-monotonic`), syslog with a
year, journald's `short-iso`, the time of `kubectl logs --timestamps` or `docker logs --timestamps`, the color of a
whole line, and a byte order mark. A named group is the prefix's time, which always has a time zone. Every expression is
anchored, and every part of it has a length limit.
"""

COLORS_AT_END = rf"(?:{_COLOR_CODE}){{1,4}}\Z"
"""Regular expression of the end of a colored line."""
