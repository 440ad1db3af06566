#!/usr/bin/env python3
# Made by `pegboard generate cli caller`. Changes are lost when it is made again.

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


DESCRIPTION = "The tools of the server caller."
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
        ("--type", "arg_type_", "type", {"required": True, "help": "* / throw 1; /*", "choices": ["self", "Self", "", "an \"odd\" \\ word"]}),
        ("--a2", "arg_a2", "a2", {"required": False, "help": "", "type": _json, "metavar": "JSON"}),
        ("--a-2-2", "arg_a_2_2", "a_2", {"required": False, "help": "", "type": _json, "metavar": "JSON"}),
        ("--help-value", "arg_help", "help", {"required": False, "help": "", "type": _json, "metavar": "JSON"}),
        ("--self", "arg_self_", "self", {"required": False, "help": "", "type": _json, "metavar": "JSON"}),
        ("--n", "arg_n", "ünï\u001b", {"required": False, "help": "", "type": _boolean, "metavar": "true|false"}),
    ]),
    "where-": ("caller.where", "A scripted tool.", [
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
