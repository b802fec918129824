#!/usr/bin/env python3
"""Drives the server with the Python `mcp` package, with a handshake and without: `python_client.py SERVER`."""
import asyncio
import sys

from mcp import Client, ClientSession, StdioServerParameters, stdio_client

from raw import tools
from steps import expect, step

server = sys.argv[1]
known = [tool["name"] for tool in tools(server)]


def limited(work):
    asyncio.run(asyncio.wait_for(work(), 120))


async def handshake():
    async with stdio_client(StdioServerParameters(command=server)) as (read, write), ClientSession(read, write) as session:
        opened = await session.initialize()
        info = opened.server_info if hasattr(opened, "server_info") else opened.serverInfo
        expect(info.name == "supervisor", info)
        expect([tool.name for tool in (await session.list_tools()).tools] == known, "another list")
        if "tier" in known:
            await check_calls(session)


async def in_mode(mode, version):
    async with Client(StdioServerParameters(command=server), mode=mode) as client:
        expect(client.protocol_version == version, f"spoke {client.protocol_version}")
        expect([tool.name for tool in (await client.list_tools()).tools] == known, "another list")
        if "tier" in known:
            await check_calls(client)


async def check_calls(client):
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total, message))

    result = await client.call_tool("tier", {}, progress_callback=on_progress)
    structure = result.structured_content if hasattr(result, "structured_content") else result.structuredContent
    expect(structure["status"] == "pass" and structure["skill"] == "tier", structure)
    wrong = await client.call_tool("tier", {"no_such_argument": 1})
    expect(wrong.is_error if hasattr(wrong, "is_error") else wrong.isError, "a wrong argument was accepted")
    expect("no_such_argument" in wrong.content[0].text, wrong.content)
    try:
        await client.call_tool("no_such_tool", {})
    except Exception as error:  # noqa: BLE001: any error that names the tool will do
        expect("no_such_tool" in str(error), error)
    else:
        raise AssertionError("an unknown tool was accepted")


step("python: handshake session", lambda: limited(handshake))
step("python: client in legacy mode", lambda: limited(lambda: in_mode("legacy", "2025-11-25")))
step("python: client in automatic mode is stateless", lambda: limited(lambda: in_mode("auto", "2026-07-28")))
if "tier" not in known:
    print("SKIPPED: python: calls, because no tool is listed")
