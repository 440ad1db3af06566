"""A client on FastMCP, in both eras. See plan.py for its use."""

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from plan import Plan, Report, list_until_complete, run


async def client(plan: Plan, report: Report) -> None:
    """Carries out the plan."""

    async def answer(message, _type, _params, _context):
        report.asked.append(message)
        return plan.answer

    if plan.url:
        transport = StreamableHttpTransport(plan.url)
    else:
        transport = StdioTransport(plan.command[0], plan.command[1:], keep_alive=False)
    mode = "auto" if plan.era == "modern" else "legacy"
    async with Client(transport, mode=mode, elicitation_handler=answer) as connected:
        report.protocol = connected.session.protocol_version

        async def list_names():
            return [tool.name for tool in await connected.list_tools()]

        report.tools = await list_until_complete(plan, list_names)
        for call in plan.calls:
            tool = call["tool"]
            count = report.on_progress(tool)
            result = await connected.call_tool_mcp(tool, call["arguments"], progress_handler=count)
            report.add_call(tool, result.model_dump(mode="json", by_alias=True))
        if plan.resource:
            contents = await connected.read_resource(plan.resource)
            report.resource = contents[0].text
        if plan.prompt:
            got = await connected.get_prompt(plan.prompt["name"], plan.prompt["arguments"])
            report.prompt = got.messages[0].content.text


run(client)
