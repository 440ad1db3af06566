# Made by `pegboard generate python caller`. Changes are lost when it is made again.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict
from typing import cast as _cast

from pegboard_calls import ToolError
from pegboard_calls import call_tool as _call

__all__ = ["Caller", "ToolError"]

UseSelf = TypedDict("UseSelf", {
    "fn": "NotRequired[str | None]",
    "x y": "NotRequired[int]",
})

UseResultSelf = TypedDict("UseResultSelf", {
    "fn": "NotRequired[str | None]",
    "x y": "NotRequired[int]",
})

UseResult = TypedDict("UseResult", {
    "type": "Literal[\"self\", \"Self\", \"\", \"an \\\"odd\\\" \\\\ word\"]",
    "a2": "NotRequired[Any]",
    "a_2": "NotRequired[dict[str, bool]]",
    "help": "NotRequired[list[str | float]]",
    "self": "NotRequired[UseResultSelf]",
    "ünï\u001b": "NotRequired[bool]",
})


class Caller:
    """The tools of the server caller."""

    def __init__(self, program: Sequence[str] = ("pegboard",)) -> None:
        self._program = program

    def throw_1(self) -> Any:
        """* / throw 1; /* """
        return _cast("Any", _call(self._program, "caller.*/ throw 1; /*", {}))

    def a2(self) -> Any:
        """A scripted tool. """
        return _cast("Any", _call(self._program, "caller.a2", {}))

    def a_2_2(self) -> Any:
        """A scripted tool. """
        return _cast("Any", _call(self._program, "caller.a_2", {}))

    def caller(self) -> Any:
        """A scripted tool. """
        return _cast("Any", _call(self._program, "caller.caller", {}))

    def use_(self, *, type_: Literal["self", "Self", "", "an \"odd\" \\ word"], a2: Any | None = None, a_2_2: dict[str, bool] | None = None, help: list[str | float] | None = None, self_: UseSelf | None = None, n: bool | None = None) -> UseResult:
        """'''* / throw 1; /* ''' """
        return _cast("UseResult", _call(self._program, "caller.use", {"type": type_, "a2": a2, "a_2": a_2_2, "help": help, "self": self_, "ünï\u001b": n}))

    def where_(self) -> Any:
        """A scripted tool. """
        return _cast("Any", _call(self._program, "caller.where", {}))
