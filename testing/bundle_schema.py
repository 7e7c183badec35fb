"""Checks the Databricks bundle against the JSON schema that the Databricks CLI prints, without a workspace.

    databricks bundle schema > schema.json
    python -m testing.bundle_schema schema.json

The schema knows every field of every resource, and refuses others. Prints each error with its place; exit code 1 if
there is one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
UNICODE = {r"\p{L}": "a-zA-Z", r"\p{N}": "0-9"}
"""Classes of Go's patterns that Python's `re` does not know, with the characters of them that the bundle's names have.
"""


def files() -> list[Path]:
    """Return the files that the bundle includes."""
    return sorted(path for pattern in loaded(ROOT / "databricks.yml")["include"] for path in ROOT.glob(pattern))


def whole() -> dict[str, Any]:
    """Return `databricks.yml` with the resources of the files that it includes."""
    resources: dict[str, Any] = {}
    for path in files():
        for kind, found in loaded(path)["resources"].items():
            resources.setdefault(kind, {}).update(found)
    return loaded(ROOT / "databricks.yml") | {"resources": resources}


def errors(bundle: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Return a line for each place where the bundle breaks the schema."""
    checked = jsonschema.validators.extend(jsonschema.Draft7Validator, {"pattern": _matches})
    places = (leaf for error in checked(schema).iter_errors(bundle) for leaf in _leaves(error))
    return sorted({f"{'.'.join(map(str, leaf.absolute_path))}: {leaf.message}" for leaf in places})


def _leaves(error: jsonschema.ValidationError) -> Iterator[jsonschema.ValidationError]:
    if not error.context:
        yield error
    for inner in error.context or ():
        yield from _leaves(inner)


def _matches(_: Any, pattern: str, text: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(text, str) and not re.search(re.sub(r"\[[^]]*]|\\p\{\w}", _known_class, pattern), text):
        yield jsonschema.ValidationError(f"{text!r} does not match {pattern!r}")


def _known_class(found: re.Match[str]) -> str:
    text = found[0] if found[0].startswith("[") else f"[{found[0]}]"
    for unicode, characters in UNICODE.items():
        text = text.replace(unicode, characters)
    return text


def loaded(path: Path) -> dict[str, Any]:
    """Return the content of a YAML file."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    found = errors(whole(), json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    sys.stdout.write("".join(f"{line}\n" for line in (*found, f"{len(found)} errors")))
    sys.exit(bool(found))
