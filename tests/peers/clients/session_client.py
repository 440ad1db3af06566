"""A client on the Python SDK 1.x that keeps one session as long as its stdin is open: each line names a tool, which is called at the URL of the first argument
with the token of the second one. Prints one line for each call: the text of its result. It never shakes hands again: a lost session ends it."""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    headers = {"Authorization": f"Bearer {sys.argv[2]}"}
    async with streamablehttp_client(sys.argv[1], headers=headers) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        while line := await asyncio.to_thread(sys.stdin.readline):
            result = await session.call_tool(line.strip(), {})
            print(result.content[0].text, flush=True)


asyncio.run(main())
