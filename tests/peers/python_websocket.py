"""A small MCP server over WebSocket (subprotocol "mcp"), on the Python SDK 1.x, the last line that has this transport.

    python tests/peers/python_websocket.py --port 0     prints its address
"""

import argparse
import socket
import warnings

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.websocket import websocket_server

# Being the last of its kind is why this server exists; the SDK need not say so at each connection.
warnings.simplefilter("ignore", DeprecationWarning)

server = FastMCP("python-websocket", log_level="WARNING")


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Add two whole numbers."""
    return str(a + b)


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Say the text again."""
    return text


@server.tool(structured_output=False)
def fail() -> str:
    """Always fail."""
    raise ToolError("this tool always fails")


@server.tool(structured_output=False)
async def count(steps: int, ctx: Context) -> str:
    """Count up, reporting progress at each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


async def app(scope, receive, send) -> None:
    """Serve one WebSocket connection until either side closes it."""
    protocol = server._mcp_server
    async with websocket_server(scope, receive, send) as (read, write):
        await protocol.run(read, write, protocol.create_initialization_options())


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    # The socket listens before the address is printed, so a reader may connect at once.
    listener = socket.create_server(("127.0.0.1", options.parse_args().port))
    print(f"listening on ws://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning")).run(sockets=[listener])
