"""A small MCP server on the Python SDK 2.x. It speaks 2026-07-28 and, to older clients, the handshake era.

    python tests/peers/python_modern.py              stdio
    python tests/peers/python_modern.py --http 0     HTTP; prints its address
"""

import argparse
import socket
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, DeclinedElicitation, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import CancelledElicitation
from pydantic import BaseModel

server = MCPServer(
    "python-modern",
    version="1.0.0",
    instructions="A peer for tests: every tool answers the same way each time.",
    log_level="WARNING",
)


class Report(BaseModel):
    """The weather of one city."""

    city: str
    celsius: float


class Name(BaseModel):
    """What the greeting tool asks for."""

    name: str


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Add two whole numbers."""
    return str(a + b)


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Say the text again."""
    return text


@server.tool()
def weather(city: str) -> Report:
    """Report the weather of a city, as text and as data."""
    return Report(city=city, celsius=21.5)


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


async def ask_name() -> Elicit[Name]:
    """Have the client ask its user."""
    return Elicit("What is your name?", Name)


@server.tool(structured_output=False)
async def greet(name: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    """Ask for a name, then greet it."""
    if isinstance(name, DeclinedElicitation | CancelledElicitation):
        return "No name, no greeting."
    return f"Hello, {name.data.name}!"


@server.resource("note://welcome", name="note", mime_type="text/plain")
def note() -> str:
    """A short note."""
    return "Welcome to the peer."


@server.prompt()
def summarize(topic: str) -> str:
    """Ask for a summary."""
    return f"Summarize {topic}."


def serve_http(port: int) -> None:
    """Serve on a loopback port; 0 takes a free one."""
    # The socket listens before the address is printed, so a reader may connect at once.
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--http", type=int, metavar="PORT")
    port = options.parse_args().http
    if port is None:
        server.run("stdio")
    else:
        serve_http(port)
