#!/usr/bin/env python3
# Made by `pegboard generate cli demo --through-pegboard`. Changes are lost when it is made again.
"""The tools of the server demo."""

TOOLS = {
    "calculate": ("demo.calculate", "Works out an arithmetic expression: + - * / % ^, parentheses, unary minus, and the functions sqrt(x), abs(x), round(x), min(a, b, …) and max(a, b, …). Numbers are doubles. ^ binds tightest and to the right, so -2^2 is -4; % is the remainder and has the sign of its left side.", [
        ("--expression", "arg_expression", "expression", "text", {"required": True, "help": "For example (2 + 3) * 4 or sqrt(2) ^ 2", "metavar": "TEXT"}),
    ]),
    "count-slowly": ("demo.count_slowly", "Counts from 1 to n with a pause before each step. Reports progress after every step if the caller asked for progress, and stops at once when it is cancelled. Use it to try out slow calls.", [
        ("--delay-ms", "arg_delay_ms", "delay_ms", "integer", {"required": False, "help": "The pause before each step, in milliseconds", "metavar": "INTEGER"}),
        ("--n", "arg_n", "n", "integer", {"required": False, "help": "How many steps to count", "metavar": "INTEGER"}),
    ]),
    "draw": ("demo.draw", "Draws a PNG picture of one shape in one colour on white.", [
        ("--color", "arg_color", "color", "text", {"required": False, "help": "#rrggbb, or black, white, gray, red, orange, yellow, green, blue or purple", "metavar": "TEXT"}),
        ("--height", "arg_height", "height", "integer", {"required": False, "help": "Height in pixels", "metavar": "INTEGER"}),
        ("--shape", "arg_shape", "shape", "text", {"required": False, "help": "What to draw; it fills the picture", "choices": ["rectangle", "ellipse"]}),
        ("--width", "arg_width", "width", "integer", {"required": False, "help": "Width in pixels", "metavar": "INTEGER"}),
    ]),
    "echo": ("demo.echo", "Gives back the text and the JSON value it is given, unchanged. At least one of the two is needed.", [
        ("--json", "arg_json", "json", "json", {"required": False, "help": "Any JSON value", "metavar": "JSON"}),
        ("--text", "arg_text", "text", "text", {"required": False, "help": "Any text", "metavar": "TEXT"}),
    ]),
    "fail": ("demo.fail", "Always fails, with the message it is given. Use it to see how a failed call is shown.", [
        ("--message", "arg_message", "message", "text", {"required": False, "help": "What the failure says", "metavar": "TEXT"}),
    ]),
    "now": ("demo.now", "Tells the current date and time, in UTC or in a time zone of your choice. Use it whenever the answer depends on today's date.", [
        ("--timezone", "arg_timezone", "timezone", "text", {"required": False, "help": "An IANA name such as Europe/Berlin, an offset such as +05:30, or UTC", "metavar": "TEXT"}),
    ]),
    "search-text": ("demo.search_text", "Finds the lines that contain a piece of text in the files of the server's folder and its subfolders. The text is taken literally, not as a pattern. Gives `path:line: text` for each matching line. Skips hidden files, symbolic links, node_modules, target, binary files and files over 1 MiB.", [
        ("--query", "arg_query", "query", "text", {"required": True, "help": "The text to look for, within one line", "metavar": "TEXT"}),
        ("--ignore-case", "arg_ignore_case", "ignore_case", "boolean", {"required": False, "help": "Whether upper and lower case are the same", "metavar": "true|false"}),
        ("--max-matches", "arg_max_matches", "max_matches", "integer", {"required": False, "help": "Stop after this many matching lines", "metavar": "INTEGER"}),
    ]),
}

import argparse
import json
import os
import subprocess
import sys


def json_value(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"write JSON: {error}") from None


def boolean(text):
    if text in ("true", "false"):
        return text == "true"
    raise argparse.ArgumentTypeError("write true or false")


TYPES = {"text": str, "integer": int, "number": float, "boolean": boolean, "json": json_value}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json-output", action="store_true", help="print the whole record of the call")
    commands = parser.add_subparsers(dest="command", required=True, metavar="TOOL")
    for name, (_, help_text, arguments) in TOOLS.items():
        escaped = help_text.replace("%", "%%")
        # argparse formats a description only if this is in it.
        described = escaped if "%(prog)" in help_text else help_text
        command = commands.add_parser(name, help=escaped, description=described)
        for flag, destination, _, kind, options in arguments:
            command.add_argument(flag, dest=destination, type=TYPES[kind], **options)
    given = vars(parser.parse_args())
    tool, _, arguments = TOOLS[given["command"]]
    values = {key: given[destination] for _, destination, key, _, _ in arguments if given[destination] is not None}
    words = [os.environ.get("PEGBOARD", "pegboard"), "call", tool, "--json", "-"]
    if given["json_output"]:
        words += ["-o", "json"]
    try:
        sys.exit(subprocess.run(words, input=json.dumps(values), text=True, check=False).returncode)
    except OSError as error:
        sys.exit(f"{words[0]}: {error}")


if __name__ == "__main__":
    main()
