# Made by `pegboard generate python demo`. Changes are lost when it is made again.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict
from typing import cast as _cast

from pegboard_calls import ToolError
from pegboard_calls import call_tool as _call

__all__ = ["Demo", "ToolError"]

CalculateResult = TypedDict("CalculateResult", {
    "value": "float",
})

EchoResult = TypedDict("EchoResult", {
    "json": "NotRequired[Any]",
    "text": "NotRequired[str]",
})

NowResult = TypedDict("NowResult", {
    "iso": "str",
    "timezone": "str",
    "unix_ms": "int",
})


class Demo:
    """The tools of the server demo."""

    def __init__(self, program: Sequence[str] = ("pegboard",)) -> None:
        self._program = program

    def calculate(self, *, expression: str) -> CalculateResult:
        """Works out an arithmetic expression: + - * / % ^, parentheses, unary minus, and the functions sqrt(x), abs(x), round(x), min(a, b, …) and max(a, b, …). Numbers are doubles. ^ binds tightest and to the right, so -2^2 is -4; % is the remainder and has the sign of its left side. """
        return _cast("CalculateResult", _call(self._program, "demo.calculate", {"expression": expression}))

    def count_slowly(self, *, delay_ms: int | None = None, n: int | None = None) -> Any:
        """Counts from 1 to n with a pause before each step. Reports progress after every step if the caller asked for progress, and stops at once when it is cancelled. Use it to try out slow calls. """
        return _cast("Any", _call(self._program, "demo.count_slowly", {"delay_ms": delay_ms, "n": n}))

    def draw(self, *, color: str | None = None, height: int | None = None, shape: Literal["rectangle", "ellipse"] | None = None, width: int | None = None) -> Any:
        """Draws a PNG picture of one shape in one colour on white. """
        return _cast("Any", _call(self._program, "demo.draw", {"color": color, "height": height, "shape": shape, "width": width}))

    def echo(self, *, json: Any | None = None, text: str | None = None) -> EchoResult:
        """Gives back the text and the JSON value it is given, unchanged. At least one of the two is needed. """
        return _cast("EchoResult", _call(self._program, "demo.echo", {"json": json, "text": text}))

    def fail(self, *, message: str | None = None) -> Any:
        """Always fails, with the message it is given. Use it to see how a failed call is shown. """
        return _cast("Any", _call(self._program, "demo.fail", {"message": message}))

    def now(self, *, timezone: str | None = None) -> NowResult:
        """Tells the current date and time, in UTC or in a time zone of your choice. Use it whenever the answer depends on today's date. """
        return _cast("NowResult", _call(self._program, "demo.now", {"timezone": timezone}))

    def search_text(self, *, query: str, ignore_case: bool | None = None, max_matches: int | None = None) -> Any:
        """Finds the lines that contain a piece of text in the files of the server's folder and its subfolders. The text is taken literally, not as a pattern. Gives `path:line: text` for each matching line. Skips hidden files, symbolic links, node_modules, target, binary files and files over 1 MiB. """
        return _cast("Any", _call(self._program, "demo.search_text", {"query": query, "ignore_case": ignore_case, "max_matches": max_matches}))
