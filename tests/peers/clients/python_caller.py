"""An agent on the Python SDK 2.x that lives as long as its stdin: each line names a tool, which is called at the URL of the
first argument. Prints one line of JSON for each call: `result`, or `error` if the client raised one; the next call then
connects anew."""

import asyncio
import json
import sys

from mcp import Client

URL = sys.argv[1]
LIMIT_SECONDS = 25


async def lines():
    """The lines of stdin."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line.strip()


class Agent:
    """Calls tools over one connection until it breaks, then over the next one."""

    def __init__(self) -> None:
        self.requests = lines()
        self.tool: str | None = None

    async def next(self) -> str | None:
        """The tool to call: the one that has no answer yet, or that of the next line."""
        if self.tool is None:
            self.tool = await anext(self.requests, None)
        return self.tool

    def tell(self, answer: dict) -> None:
        """Answers the call."""
        self.tool = None
        print(json.dumps(answer), flush=True)

    async def connection(self) -> None:
        """Calls tools until the end of stdin. Raises what the client raises."""
        async with Client(URL, mode="auto") as client:
            while tool := await self.next():
                result = await client.call_tool(tool, {}, read_timeout_seconds=LIMIT_SECONDS)
                self.tell({"result": result.model_dump(mode="json", by_alias=True)})

    async def run(self) -> None:
        """Works until the end of stdin."""
        while await self.next():
            try:
                await self.connection()
            except Exception as exception:
                # A client that is closed after its call failed may raise once more.
                if self.tool:
                    self.tell({"error": f"{type(exception).__name__}: {exception}"})


asyncio.run(Agent().run())
