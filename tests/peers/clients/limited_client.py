"""Calls a tool until a limit refuses it, then lists the tools in the same session. Arguments: the URL, the token, the tool."""

import asyncio
import json
import sys
from importlib.metadata import version

URL, TOKEN, TOOL = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


async def use(client) -> dict:
    """Calls twice with a rate of one, and goes on."""
    await client.call_tool(TOOL, {"expression": "6 * 7"})
    try:
        refused = await client.call_tool(TOOL, {"expression": "6 * 7"})
        error = "" if not refused.model_dump(by_alias=True)["isError"] else refused.content[0].text
    except Exception as exception:  # The two lines of the SDK have different classes.
        error = str(exception)
    return {"error": error, "tools": len((await client.list_tools()).tools)}


async def first_line() -> dict:
    """SDK 1.x, which speaks the handshake era only."""
    import httpx
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx.AsyncClient(headers=HEADERS) as http,
        streamable_http_client(URL, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        return await use(session)


async def second_line() -> dict:
    """SDK 2.x, which finds out by itself that the server is modern."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=HEADERS) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode="auto") as client:
            return await use(client)


async def main() -> None:
    line = first_line if version("mcp").startswith("1.") else second_line
    print(json.dumps(await asyncio.wait_for(line(), 60)))


asyncio.run(main())
