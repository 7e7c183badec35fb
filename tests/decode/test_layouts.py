"""The newest layout of every version is field for field the schema that Kafka 4.4.0's own classes were generated from."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any

import pytest

from jobs.setup.jars import jars
from schemas.records import KINDS, Maybe, Struct, Type

NOT_IN_4_4 = {24}


def schema(name: str) -> dict[str, Any]:
    jar = next(file for file in jars("kafka") if "kafka-group-coordinator-4.4.0" in file.name)
    with zipfile.ZipFile(jar) as files:
        text = files.read(f"common/message/{name}.json").decode()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def holds(versions: str | None, version: int) -> bool:
    """Whether "2+", "0-3", "1" or "none" names this version."""
    if versions in (None, "none"):
        return False
    first, _, last = versions.partition("-")
    return int(first.rstrip("+")) <= version and (first.endswith("+") or version <= int(last or first))


def kafkas_struct(fields: list[dict[str, Any]], version: int, named: dict[str, list[dict[str, Any]]]) -> Struct:
    plain, tags = [], {}
    for field in fields:
        if not holds(field.get("versions", field.get("taggedVersions")), version):
            continue
        declared = field["name"][0].lower() + field["name"][1:], kafkas_type(field, version, named)
        if holds(field.get("taggedVersions"), version):
            tags[field["tag"]] = declared
        else:
            plain.append(declared)
    return Struct(tuple(plain), tags)


def kafkas_type(field: dict[str, Any], version: int, named: dict[str, list[dict[str, Any]]]) -> Type:
    kind = field["type"].removeprefix("[]")
    inner = kafkas_struct(field.get("fields") or named[kind], version, named) if kind[0].isupper() else kind
    outer = [inner] if field["type"].startswith("[]") else inner
    return Maybe(outer) if holds(field.get("nullableVersions"), version) else outer


def kafkas(name: str, version: int) -> Struct:
    declared = schema(name)
    named = {each["name"]: each["fields"] for each in declared.get("commonStructs", [])}
    return kafkas_struct(declared["fields"], version, named)


@pytest.mark.parametrize("number", sorted(set(KINDS) - NOT_IN_4_4), ids=lambda number: KINDS[number].name)
def test_every_layout_is_kafkas_schema(number):
    kind = KINDS[number]
    value = schema(f"{kind.name}Value")
    assert kafkas(f"{kind.name}Key", 0) == kind.key
    assert (number, number) == (schema(f"{kind.name}Key")["apiKey"], value["apiKey"])
    for version, declared in kind.versions.items():
        if not holds(value["validVersions"], version):
            assert 0 == number, "only type 0 had more versions than its schema since 4.1"
            continue
        assert kafkas(f"{kind.name}Value", version) == declared.layouts[0]
        assert holds(value["flexibleVersions"], version) == declared.flexible


def test_no_type_or_version_of_kafka_is_missing():
    jar = next(file for file in jars("kafka") if "kafka-group-coordinator-4.4.0" in file.name)
    with zipfile.ZipFile(jar) as files:
        names = {m[1] for n in files.namelist() if (m := re.fullmatch(r"common/message/(\w+)Value\.json", n))}
    assert names == {kind.name for number, kind in KINDS.items() if number not in NOT_IN_4_4}
    for kind in (KINDS[number] for number in KINDS if number not in NOT_IN_4_4):
        valid = schema(f"{kind.name}Value")["validVersions"]
        assert {v for v in range(20) if holds(valid, v)} <= set(kind.versions)
