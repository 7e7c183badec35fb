"""`regroup mcp` as a process, asked by the client of the official SDK, over tables and over pages."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from dashboards.answers.questions.questions import BY_NAME
from jobs.cli import main

ROOT = Path(__file__).parents[3]


def in_a_thread(act):
    """Return the result of `act`, run in another thread: in this one, another test's browser may keep an asyncio loop
    running.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


def asked(*arguments, calls=()):
    """Start `regroup mcp`, and return its tools and the results of calls."""
    command = ["-P", "-m", "jobs.cli", "mcp", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=ROOT)

    async def ask():
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(*call) for call in calls]

    return in_a_thread(lambda: asyncio.run(ask()))


def test_an_assistant_finds_the_tools_and_gets_answers_and_sentences(clusters) -> None:
    calls = [("why", {"group": "imports-joiner"}), ("why", {"group": "none"}), ("why", {"grp": "a"}), ("groups", {})]
    tools, (why, unknown, wrong, groups) = asked("--warehouse", clusters, calls=calls)
    assert {tool.name: tool.input_schema for tool in tools} == {n: each.schema() for n, each in BY_NAME.items()}
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert not why.is_error
    assert "imports-joiner" == why.structured_content["group_id"]
    assert why.structured_content == json.loads(why.content[0].text)
    assert (True, "There is no group none") == (unknown.is_error, unknown.content[0].text[:22])
    assert (True, "why has no parameter grp") == (wrong.is_error, wrong.content[0].text[:24])
    assert not groups.structured_content["is_observed"], "the recordings are older than a day"


def test_an_assistant_can_ask_pages(address) -> None:
    calls = [("why", {"group": "billing-worker"}), ("why", {"group": "none"})]
    _, (why, unknown) = asked("--pages", address, calls=calls)
    assert "billing-worker" == why.structured_content["group_id"]
    assert (True, "There is no group none") == (unknown.is_error, unknown.content[0].text[:22])


@pytest.mark.parametrize("pages", ["regroup.example", "file:///etc/passwd", "http://a?b=c", "http://[::1"])
def test_pages_have_an_address(pages, capsys, tmp_path) -> None:
    assert 2 == main(["mcp", "--pages", pages, "--warehouse", str(tmp_path)])
    assert "must be an address such as https://regroup.example.org." in capsys.readouterr().err


def test_without_the_sdk_a_sentence_says_what_to_install(capsys, tmp_path, monkeypatch) -> None:
    for name in ("mcp", "mcp_types"):
        monkeypatch.setitem(sys.modules, name, None)
    assert 2 == in_a_thread(lambda: main(["mcp", "--warehouse", str(tmp_path)]))
    assert "install regroup[mcp]" in capsys.readouterr().err
