#!/usr/bin/env python3
# Made by `pegboard generate cli caller --through-pegboard`. Changes are lost when it is made again.
"""The tools of the server caller."""

TOOLS = {
    "throw-1": ("caller.*/ throw 1; /*", "", [
    ]),
    "a2": ("caller.a2", "A scripted tool.", [
    ]),
    "a-2-2": ("caller.a_2", "A scripted tool.", [
    ]),
    "caller": ("caller.caller", "A scripted tool.", [
    ]),
    "use-": ("caller.use", "'''* / throw 1; /* '''", [
        ("--type", "arg_type_", "type", "text", {"required": True, "help": "* / throw 1; /*", "choices": ["self", "Self", "", "an \"odd\" \\ word"]}),
        ("--a2", "arg_a2", "a2", "json", {"required": False, "help": "", "metavar": "JSON"}),
        ("--a-2-2", "arg_a_2_2", "a_2", "json", {"required": False, "help": "", "metavar": "JSON"}),
        ("--help-value", "arg_help", "help", "json", {"required": False, "help": "", "metavar": "JSON"}),
        ("--self", "arg_self_", "self", "json", {"required": False, "help": "", "metavar": "JSON"}),
        ("--n", "arg_n", "ünï\u001b", "boolean", {"required": False, "help": "", "metavar": "true|false"}),
    ]),
    "where-": ("caller.where", "A scripted tool.", [
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
