"""The command line of the Python clients, the plan that they carry out, and the report that they print.

    python CLIENT.py --era legacy|modern --plan FILE --url URL
    python CLIENT.py --era legacy|modern --plan FILE -- COMMAND ARGUMENT...

A plan is a JSON object: `tools` (the names to wait for, because a gateway lists the tools of a server once that has
started), `calls` (each with `tool` and `arguments`), `resource` (a URI), `prompt` (with `name` and `arguments`) and
`answer`, the content of the answer to every form that a server asks the user to fill in. The report is one JSON object on
stdout with what the client was given. A failure is one line on stderr and exit code 1.
"""

import argparse
import asyncio
import json
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

# One run of a plan, with all its calls.
LIMIT_SECONDS = 120
# How long tools are waited for, and how often they are listed meanwhile.
TOOLS_SECONDS = 60
PAUSE_SECONDS = 0.2


@dataclass
class Plan:
    """What to do, and at which server."""

    era: str
    url: str | None
    command: list[str]
    tools: list[str]
    calls: list[dict]
    resource: str | None
    prompt: dict | None
    answer: dict


@dataclass
class Report:
    """What the client was given."""

    protocol: str = ""
    tools: list[str] = field(default_factory=list)
    calls: list[dict] = field(default_factory=list)
    resource: str | None = None
    prompt: str | None = None
    asked: list[str] = field(default_factory=list)
    progress: dict[str, int] = field(default_factory=dict)

    def add_call(self, tool: str, result: dict) -> None:
        """Adds the result of a call, in the words of the protocol."""
        text = "\n".join(block_text(block) for block in result["content"])
        self.calls.append({"tool": tool, "text": text, "failed": bool(result.get("isError"))})

    def on_progress(self, tool: str):
        """A callback that counts the progress notifications of one call."""

        async def count(*_):
            self.progress[tool] = self.progress.get(tool, 0) + 1

        return count


async def list_until_complete(plan: Plan, list_names) -> list[str]:
    """Lists tools until those of the plan are there, or for as long as servers may take to start."""
    for _ in range(int(TOOLS_SECONDS / PAUSE_SECONDS)):
        names = await list_names()
        if set(plan.tools) <= set(names):
            break
        await asyncio.sleep(PAUSE_SECONDS)
    return names


def block_text(block: dict) -> str:
    """The text of a content block, or what identifies a block without text."""
    match block["type"]:
        case "text":
            return block["text"]
        case "resource_link":
            return block["uri"]
        case "resource":
            return block["resource"].get("text") or block["resource"]["uri"]
        case _:
            return block["mimeType"]


def read_plan() -> Plan:
    """Reads the plan that the command line names."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--era", choices=["legacy", "modern"], required=True)
    options.add_argument("--plan", type=Path, required=True)
    options.add_argument("--url")
    options.add_argument("command", nargs="*")
    given = options.parse_args()
    if bool(given.url) == bool(given.command):
        options.error("give either --url or a command")
    plan = json.loads(given.plan.read_text())
    return Plan(
        era=given.era,
        url=given.url,
        command=given.command,
        tools=plan.get("tools", []),
        calls=plan["calls"],
        resource=plan.get("resource"),
        prompt=plan.get("prompt"),
        answer=plan.get("answer", {}),
    )


def run(client) -> None:
    """Runs `client(plan, report)` and prints the report."""
    plan, report = read_plan(), Report()

    async def limited():
        async with asyncio.timeout(LIMIT_SECONDS):
            await client(plan, report)

    try:
        asyncio.run(limited())
    except BaseException as error:
        traceback.print_exc()
        after = report.calls[-1]["tool"] if report.calls else "no call"
        print(f"failed after {after}: {error!r}", file=sys.stderr)
        sys.exit(1)
    print(json.dumps(vars(report)))
