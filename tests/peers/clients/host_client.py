"""A host on the Python SDK 2.x: starts the server that its config file names, lists the tools and calls one. The arguments are the file, the
server, the tool and the tool's arguments as JSON. Prints one line of JSON: `tools` and the text of the `result`."""

import asyncio
import json
import pathlib
import sys

from mcp import Client, StdioServerParameters

LIMIT_SECONDS = 60


async def main(config: str, server: str, tool: str, arguments: str) -> None:
    """Does what a host does when its user asks for the tool."""
    entry = json.loads(pathlib.Path(config).read_text(encoding="utf-8"))["mcpServers"][server]
    parameters = StdioServerParameters(command=entry["command"], args=entry.get("args", []), env=entry.get("env"))
    async with Client(parameters) as client:
        tools = [listed.name for listed in (await client.list_tools()).tools]
        result = await client.call_tool(tool, json.loads(arguments), read_timeout_seconds=LIMIT_SECONDS)
        print(json.dumps({"tools": tools, "result": [block.text for block in result.content]}))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), LIMIT_SECONDS))
