"""An MCP server on the Python SDK 2.x that wants and tells everything the era without a handshake allows.

    python tests/peers/python_features.py              stdio
    python tests/peers/python_features.py --http 0     HTTP; prints its address
"""

import argparse
import socket
import warnings

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsRequest,
    PromptReference,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

# Some of what is used here will leave the protocol one day; until then it is tested.
warnings.simplefilter("ignore")

server = MCPServer("python-features", version="1.0.0", log_level="ERROR")

QUESTION = {"type": "object", "required": ["colour"], "properties": {"colour": {"type": "string"}}}


def wants(state: str, **requests) -> InputRequiredResult:
    """Ask the client for something and have the state carried back."""
    return InputRequiredResult(input_requests=requests, request_state=state)


def colour_request() -> ElicitRequest:
    """A form with one field."""
    return ElicitRequest(params=ElicitRequestFormParams(message="Which colour?", requested_schema=QUESTION))


def colour_of(ctx: Context) -> str | None:
    """What the user typed, once there is an answer."""
    answers = ctx.input_responses
    return answers["colour"].content["colour"] if answers else None


@server.tool(structured_output=False)
async def log(ctx: Context) -> str:
    """Write to the log at two levels."""
    await ctx.debug("a whisper")
    await ctx.warning("a warning", logger_name="features")
    return "logged"


@server.tool(structured_output=False)
async def touch(ctx: Context) -> str:
    """Say that a resource has changed."""
    await ctx.notify_resource_updated("note://shelf/book")
    return "touched"


# How many calls were given up while they were waiting.
given_up = 0


@server.tool(structured_output=False)
async def linger(ctx: Context) -> str:
    """Wait for long, and notice when nobody waits for it any more."""
    global given_up
    try:
        await ctx.report_progress(1)
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        given_up += 1
        raise
    return "waited"


@server.tool(structured_output=False)
async def count_given_up() -> str:
    """Tell how many calls were given up."""
    return str(given_up)


async def grown() -> str:
    """Not there from the beginning."""
    return "grown"


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    """Offer one more tool."""
    server.add_tool(grown, structured_output=False)
    await ctx.notify_tools_changed()
    return "growing"


@server.tool(structured_output=False)
async def ask_model(ctx: Context) -> str | InputRequiredResult:
    """Have the client ask its model."""
    if not ctx.input_responses:
        message = SamplingMessage(role="user", content=TextContent(type="text", text="six by seven?"))
        params = CreateMessageRequestParams(messages=[message], max_tokens=100)
        return wants("model", answer=CreateMessageRequest(params=params))
    return f"the model says {ctx.input_responses['answer'].content.text}"


@server.tool(structured_output=False)
async def ask_roots(ctx: Context) -> str | InputRequiredResult:
    """Have the client list its roots."""
    if not ctx.input_responses:
        return wants("roots", roots=ListRootsRequest())
    return "the roots are " + ", ".join(str(root.uri) for root in ctx.input_responses["roots"].roots)


@server.tool(structured_output=False)
async def ask_visit(ctx: Context) -> str | InputRequiredResult:
    """Send the user to a page."""
    if not ctx.input_responses:
        params = ElicitRequestURLParams(message="Sign in.", url="https://example.org/sign-in")
        return wants("visit", page=ElicitRequest(params=params))
    return f"the user said {ctx.input_responses['page'].action}"


class Colour(BaseModel):
    """What the insisting tool asks for."""

    colour: str


@server.tool(structured_output=False)
async def insist(ctx: Context) -> str:
    """Send a question during the call, which only the era with a handshake has."""
    answer = await ctx.elicit("Which colour?", Colour)
    return f"the colour is {answer.data.colour}"


@server.resource("note://{shelf}/{book}", name="books", mime_type="text/plain")
def book(shelf: str, book: str) -> str:
    """One of many notes."""
    return f"{book} on {shelf}"


@server.resource("paint://{name}", name="paint", mime_type="text/plain")
async def paint(name: str, ctx: Context) -> str | InputRequiredResult:
    """A note that needs a colour first."""
    return f"{name} is {colour_of(ctx)}" if colour_of(ctx) else wants("paint", colour=colour_request())


@server.prompt()
async def poem(topic: str, ctx: Context) -> str | InputRequiredResult:
    """A prompt that needs a colour first."""
    return f"A {colour_of(ctx)} poem about {topic}." if colour_of(ctx) else wants("poem", colour=colour_request())


@server.completion()
async def complete(ref, argument, context):
    """Topics for the prompt, shelves for the notes."""
    values = ["tea", "time"] if isinstance(ref, PromptReference) else ["shelf", "shed"]
    return Completion(values=[value for value in values if value.startswith(argument.value)])


def serve_http(port: int) -> None:
    """Serve on a loopback port; 0 takes a free one."""
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--http", type=int, metavar="PORT")
    port = options.parse_args().http
    if port is None:
        server.run("stdio")
    else:
        serve_http(port)
