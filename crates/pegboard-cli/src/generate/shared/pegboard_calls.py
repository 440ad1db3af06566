# Made by `pegboard generate python`. Changes are lost when it is made again.
"""Calls tools with `pegboard call`, for all wrappers in this folder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any


class ToolError(Exception):
    """A call that has not succeeded. `record` is what `pegboard call -o json` prints."""

    def __init__(self, record: dict[str, Any]) -> None:
        super().__init__(record.get("text"))
        self.record = record


def call_tool(program: Sequence[str], name: str, arguments: dict[str, Any]) -> Any:
    """The structured result of a tool, or its text if it has none."""
    given = {key: value for key, value in arguments.items() if value is not None}
    words = [*program, "call", name, "--json", "-", "-o", "json"]
    done = subprocess.run(words, input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=False)
    try:
        record = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"pegboard ended with {done.returncode} and printed no JSON") from None
    if record["status"] != "done" or record["is_error"]:
        raise ToolError(record)
    return record["text"] if record["structured"] is None else record["structured"]
