#!/usr/bin/env python3
# Made by `pegboard generate cli demo`. Changes are lost when it is made again.

import argparse
import json
import os
import subprocess
import sys


def _json(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"write JSON: {error}") from None


def _boolean(text):
    if text in ("true", "false"):
        return text == "true"
    raise argparse.ArgumentTypeError("write true or false")


DESCRIPTION = "The tools of the server demo."
TOOLS = {
    "calculate": ("demo.calculate", "Works out an arithmetic expression: + - * / % ^, parentheses, unary minus, and the functions sqrt(x), abs(x), round(x), min(a, b, …) and max(a, b, …). Numbers are doubles. ^ binds tightest and to the right, so -2^2 is -4; % is the remainder and has the sign of its left side.", [
        ("--expression", "arg_expression", "expression", {"required": True, "help": "For example (2 + 3) * 4 or sqrt(2) ^ 2", "type": str, "metavar": "TEXT"}),
    ]),
    "count-slowly": ("demo.count_slowly", "Counts from 1 to n with a pause before each step. Reports progress after every step if the caller asked for progress, and stops at once when it is cancelled. Use it to try out slow calls.", [
        ("--delay-ms", "arg_delay_ms", "delay_ms", {"required": False, "help": "The pause before each step, in milliseconds", "type": int, "metavar": "INTEGER"}),
        ("--n", "arg_n", "n", {"required": False, "help": "How many steps to count", "type": int, "metavar": "INTEGER"}),
    ]),
    "draw": ("demo.draw", "Draws a PNG picture of one shape in one colour on white.", [
        ("--color", "arg_color", "color", {"required": False, "help": "#rrggbb, or black, white, gray, red, orange, yellow, green, blue or purple", "type": str, "metavar": "TEXT"}),
        ("--height", "arg_height", "height", {"required": False, "help": "Height in pixels", "type": int, "metavar": "INTEGER"}),
        ("--shape", "arg_shape", "shape", {"required": False, "help": "What to draw; it fills the picture", "choices": ["rectangle", "ellipse"]}),
        ("--width", "arg_width", "width", {"required": False, "help": "Width in pixels", "type": int, "metavar": "INTEGER"}),
    ]),
    "echo": ("demo.echo", "Gives back the text and the JSON value it is given, unchanged. At least one of the two is needed.", [
        ("--json", "arg_json", "json", {"required": False, "help": "Any JSON value", "type": _json, "metavar": "JSON"}),
        ("--text", "arg_text", "text", {"required": False, "help": "Any text", "type": str, "metavar": "TEXT"}),
    ]),
    "fail": ("demo.fail", "Always fails, with the message it is given. Use it to see how a failed call is shown.", [
        ("--message", "arg_message", "message", {"required": False, "help": "What the failure says", "type": str, "metavar": "TEXT"}),
    ]),
    "now": ("demo.now", "Tells the current date and time, in UTC or in a time zone of your choice. Use it whenever the answer depends on today's date.", [
        ("--timezone", "arg_timezone", "timezone", {"required": False, "help": "An IANA name such as Europe/Berlin, an offset such as +05:30, or UTC", "type": str, "metavar": "TEXT"}),
    ]),
    "search-text": ("demo.search_text", "Finds the lines that contain a piece of text in the files of the server's folder and its subfolders. The text is taken literally, not as a pattern. Gives `path:line: text` for each matching line. Skips hidden files, symbolic links, node_modules, target, binary files and files over 1 MiB.", [
        ("--query", "arg_query", "query", {"required": True, "help": "The text to look for, within one line", "type": str, "metavar": "TEXT"}),
        ("--ignore-case", "arg_ignore_case", "ignore_case", {"required": False, "help": "Whether upper and lower case are the same", "type": _boolean, "metavar": "true|false"}),
        ("--max-matches", "arg_max_matches", "max_matches", {"required": False, "help": "Stop after this many matching lines", "type": int, "metavar": "INTEGER"}),
    ]),
}


def main():
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--json-output", action="store_true", help="print the whole record of the call")
    commands = parser.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for name, (tool, help_text, arguments) in TOOLS.items():
        escaped = help_text.replace("%", "%%")
        # argparse formats a description only if this is in it.
        described = escaped if "%(prog)" in help_text else help_text
        command = commands.add_parser(name, help=escaped, description=described)
        command.set_defaults(name=tool, keys={destination: key for _, destination, key, _ in arguments})
        for flag, destination, _, options in arguments:
            command.add_argument(flag, dest=destination, **options)
    given = vars(parser.parse_args())
    values = {key: given[destination] for destination, key in given["keys"].items() if given[destination] is not None}
    words = [os.environ.get("PEGBOARD", "pegboard"), "call", given["name"], "--json", "-"]
    if given["json_output"]:
        words += ["-o", "json"]
    try:
        sys.exit(subprocess.run(words, input=json.dumps(values), text=True, check=False).returncode)
    except OSError as error:
        sys.exit(f"{words[0]}: {error}")


if __name__ == "__main__":
    main()
