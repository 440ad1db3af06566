"""A client on the Python SDK, for its lines 1.x (handshake era only) and 2.x (both eras). See plan.py for its use."""

from contextlib import asynccontextmanager
from importlib.metadata import version

from plan import Plan, Report, list_until_complete, run

IS_FIRST_LINE = version("mcp").startswith("1.")

if IS_FIRST_LINE:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.types import ElicitResult
else:
    from mcp import Client, StdioServerParameters
    from mcp_types import ElicitResult


def stdio_parameters(plan: Plan) -> StdioServerParameters:
    """The server process of a plan."""
    return StdioServerParameters(command=plan.command[0], args=plan.command[1:])


@asynccontextmanager
async def connect_first_line(plan: Plan, report: Report, answer):
    """A session of SDK 1.x."""
    if plan.era != "legacy":
        raise ValueError("the Python SDK 1.x speaks the handshake era only")
    transport = streamable_http_client(plan.url) if plan.url else stdio_client(stdio_parameters(plan))
    async with transport as streams, ClientSession(streams[0], streams[1], elicitation_callback=answer) as session:
        report.protocol = (await session.initialize()).protocolVersion
        await session.send_ping()
        yield session


@asynccontextmanager
async def connect_second_line(plan: Plan, report: Report, answer):
    """A client of SDK 2.x, which finds out by itself whether the server is modern."""
    server = plan.url or stdio_parameters(plan)
    mode = "auto" if plan.era == "modern" else "legacy"
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        report.protocol = client.protocol_version
        yield client


def wire(result) -> dict:
    """A result with the names of the protocol, which the two lines spell differently in Python."""
    return result.model_dump(mode="json", by_alias=True)


async def list_tools(client) -> list[str]:
    """The names of all tools, page by page."""
    names, cursor = [], None
    while True:
        if not IS_FIRST_LINE:
            page = wire(await client.list_tools(cursor=cursor))
        elif cursor:
            page = wire(await client.list_tools(cursor))
        else:
            page = wire(await client.list_tools())
        names += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if not cursor:
            return names


async def client(plan: Plan, report: Report) -> None:
    """Carries out the plan."""

    async def answer(_, params):
        report.asked.append(params.message)
        return ElicitResult(action="accept", content=plan.answer)

    connect = connect_first_line if IS_FIRST_LINE else connect_second_line
    async with connect(plan, report, answer) as connected:
        report.tools = await list_until_complete(plan, lambda: list_tools(connected))
        for call in plan.calls:
            tool = call["tool"]
            count = report.on_progress(tool)
            result = await connected.call_tool(tool, call["arguments"], progress_callback=count)
            report.add_call(tool, wire(result))
        if plan.resource:
            report.resource = wire(await connected.read_resource(plan.resource))["contents"][0]["text"]
        if plan.prompt:
            got = await connected.get_prompt(plan.prompt["name"], plan.prompt["arguments"])
            report.prompt = wire(got)["messages"][0]["content"]["text"]


run(client)
