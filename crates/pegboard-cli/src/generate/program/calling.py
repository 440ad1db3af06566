

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
