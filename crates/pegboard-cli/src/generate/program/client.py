

import argparse
import base64
import http.client
import io
import json
import mimetypes
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
# For how many seconds a server may be silent in one era of the protocol before it is asked in the other one, too.
SILENCE = 5.0
# The most bytes of one message.
MOST = 64 << 20
# How many seconds a server may take to end when its input has ended.
FAREWELL = 0.5
# Exit codes, the same as those of `pegboard call`.
TOOL_FAILED, USAGE, UNAVAILABLE, SIGN_IN, TIME_UP, INTERRUPTED = 1, 2, 3, 4, 124, 130
REFERENCE = re.compile(r"\$\$|\$\{([^}:]+)(?::-([^}]*))?\}")
SENSITIVE = re.compile("TOKEN|SECRET|PASSWORD|PASSWD|AUTH|KEY|CREDENTIAL")
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Failure(Exception):
    """Why there is no result, with the exit code and a hint."""

    def __init__(self, code, message, hint=None):
        super().__init__(message)
        self.code = code
        self.hint = hint


class Rejected(Exception):
    """The error with which the server has answered a request."""

    def __init__(self, key, error):
        error = error if isinstance(error, dict) else {}
        super().__init__(str(error.get("message") or "an error without a message"))
        self.key = key
        self.number = error.get("code")


class Silence(Exception):
    """There was no answer in time."""


def expand(text):
    """A setting with the values of its variables."""

    def value(match):
        name, default = match.groups()
        if name is None:
            return "$"
        found = os.environ.get(name) or default
        if found is None:
            raise Failure(USAGE, f"the variable {name} is not set", f"the server {NAME} needs it: export {name}=...")
        return found

    return REFERENCE.sub(value, text)


def is_inherited(name):
    """Whether the server gets a variable that its settings do not name."""
    inherited, upper = SERVER["inherit"], name.upper()
    if inherited is None or name in inherited:
        return True
    return upper.startswith(tuple(SERVER["inherit_prefixes"])) and not SENSITIVE.search(upper)


def parse(text):
    """The messages of a line or of a body."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [one for one in (message if isinstance(message, list) else [message]) if isinstance(one, dict)]


class Process:
    """A server that is started here: messages are lines of its input and output."""

    def __init__(self, is_verbose):
        words = [expand(word) for word in SERVER["command"]]
        environment = {name: value for name, value in os.environ.items() if is_inherited(name)}
        environment.update({name: expand(value) for name, value in SERVER["env"].items()})
        program = shutil.which(words[0], path=environment.get("PATH")) or words[0]
        self.errors = None if is_verbose else tempfile.TemporaryFile()
        self.messages = queue.SimpleQueue()
        self.outgoing = queue.SimpleQueue()
        try:
            self.child = subprocess.Popen(
                [program, *words[1:]],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env=environment,
                cwd=SERVER["cwd"],
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise Failure(UNAVAILABLE, f"{words[0]} cannot be started: {error.strerror}") from None
        for task in (self._read, self._write):
            threading.Thread(target=task, daemon=True).start()

    def _read(self):
        lines = io.BufferedReader(self.child.stdout)
        while line := lines.readline(MOST):
            for message in parse(line):
                self.messages.put(message)
        self.messages.put(None)

    def _write(self):
        try:
            while (rest := self.outgoing.get()) is not None:
                while rest:
                    rest = rest[self.child.stdin.write(rest) :]
            self.child.stdin.close()
        except (OSError, ValueError):
            pass  # A server that reads no more ends, and that is reported.

    def send(self, message, _headers, _wait):
        self.outgoing.put(json.dumps(message).encode() + b"\n")

    def ended(self):
        try:
            code = self.child.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            return Failure(UNAVAILABLE, f"the server {NAME} has closed its output")
        said = ""
        if self.errors:
            self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - 4096))
            said = HIDDEN.sub("", self.errors.read().decode("utf-8", "replace")).strip()
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return Failure(UNAVAILABLE, f"the server {NAME} has ended with {how}", said and f"its last lines:\n{said}")

    def close(self):
        self.outgoing.put(None)
        for patience, name in ((FAREWELL, "SIGTERM"), (2 * FAREWELL, "SIGKILL"), (2 * FAREWELL, None)):
            try:
                self.child.wait(patience)
                break
            except subprocess.TimeoutExpired:
                if name:
                    self._signal(name)
        # What the server has started ends with it.
        self._signal("SIGKILL")

    def _signal(self, name):
        try:
            if os.name == "posix":
                os.killpg(self.child.pid, getattr(signal, name))
            else:
                self.child.kill()
        except OSError:
            pass  # Nothing of it runs any more.


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Credentials are for one address only."""

    def redirect_request(self, *_):
        return None


class Http:
    """A server at a URL: a message is a request, its answer a document or a stream of events."""

    def __init__(self, limit):
        url = urllib.parse.urlsplit(expand(SERVER["url"]))
        self.headers = {name: expand(value) for name, value in SERVER["headers"].items()}
        user, password = url.username, url.password
        if SERVER["basic"]:
            user, password = (expand(part) for part in SERVER["basic"])
        token = None
        if SERVER["token_file"]:
            try:
                with open(SERVER["token_file"], encoding="utf-8") as file:
                    token = file.read().strip()
            except OSError as error:
                raise Failure(SIGN_IN, f"the token cannot be read: {error}") from None
        elif SERVER["token"]:
            token = os.environ.get(SERVER["token"])
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        elif user is not None:
            pair = f"{urllib.parse.unquote(user)}:{urllib.parse.unquote(password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self.url = urllib.parse.urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2]))
        self.session = None
        self.limit = limit
        self.messages = queue.SimpleQueue()
        self.opener = urllib.request.build_opener(NoRedirects)

    def send(self, message, headers, wait):
        task = threading.Thread(target=self._post, args=(message, headers), daemon=True)
        task.start()
        if wait is not None:
            task.join(wait)

    def _post(self, message, headers):
        key = message.get("id") if "method" in message else None
        try:
            self._exchange(json.dumps(message).encode(), headers, key)
        except Failure as failure:
            self.messages.put(failure)
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            self.messages.put(Failure(UNAVAILABLE, f"no answer from {self.url}: {why}"))

    def _open(self, body, headers):
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **self.headers, **headers}
        if self.session:
            sent["Mcp-Session-Id"] = self.session
        request = urllib.request.Request(self.url, body, sent, method="GET" if body is None else "POST")
        try:
            return self.opener.open(request, timeout=self.limit)
        except urllib.error.HTTPError as error:
            return error

    def _exchange(self, body, headers, key):
        last, pause = None, 1.0
        while True:
            with self._open(body, headers) as response:
                status = response.getcode()
                if status in (401, 403):
                    hint = f"put a token into the variable {SERVER['token']}" if SERVER["token"] else "check its credentials"
                    raise Failure(SIGN_IN, f"{self.url} refuses the request with HTTP {status}", hint)
                if headers.get("Mcp-Method") is None and response.headers.get("Mcp-Session-Id"):
                    self.session = response.headers["Mcp-Session-Id"]
                if status != 200 or response.headers.get_content_type() != "text/event-stream":
                    self._document(response, status, key)
                    return
                is_answered, last, pause = self._events(response, key, last, pause)
            if key is None or is_answered:
                return
            if last is None:
                raise Failure(UNAVAILABLE, "the connection ended before the result came; the tool may have run")
            # The stream continues after the last event that arrived.
            time.sleep(pause)
            body, headers = None, {**headers, "Last-Event-ID": last}

    def _document(self, response, status, key):
        messages = [message for message in parse(response.read(MOST)) if "jsonrpc" in message]
        for message in messages:
            self.messages.put({**message, "id": key} if "error" in message and message.get("id") is None else message)
        if key is not None and not messages:
            error = {"code": status, "message": f"HTTP {status} from {self.url}"}
            self.messages.put({"id": key, "error": error})

    def _events(self, response, key, last, pause):
        data = []
        while line := response.readline(MOST):
            field, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "data":
                data.append(value)
            elif field == "id":
                last = value
            elif field == "retry" and value.isdigit():
                pause = int(value) / 1000
            elif field == "" and data:
                messages, data = parse("\n".join(data)), []
                for message in messages:
                    self.messages.put(message)
                    if key is not None and message.get("id") == key and "method" not in message:
                        return True, last, pause
        return False, last, pause

    def ended(self):
        return Failure(UNAVAILABLE, f"{self.url} has closed the connection")

    def close(self):
        if self.session:
            headers = {**self.headers, "Mcp-Session-Id": self.session}
            request = urllib.request.Request(self.url, headers=headers, method="DELETE")
            try:
                self.opener.open(request, timeout=4 * FAREWELL).close()
            except (OSError, ValueError, http.client.HTTPException):
                pass  # The server forgets the session by itself.


class Client:
    """The protocol: finds out which era the server speaks, and calls a tool."""

    def __init__(self, wire, deadline):
        self.wire = wire
        self.deadline = deadline
        self.version = None
        self.count = 0

    def remaining(self):
        return max(0.0, self.deadline - time.monotonic())

    def _start(self, version, method, params, headers=()):
        self.count += 1
        message = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}
        sent = {} if version is None else {"MCP-Protocol-Version": version}
        if version == MODERN:
            sent.update({"Mcp-Method": method, **dict(headers)})
            message["params"] = {**params, "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": {},
            }}
        self.wire.send(message, sent, None)
        return self.count

    def _notify(self, method, params):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.wire.send(message, {"MCP-Protocol-Version": self.version}, self.remaining())

    def _wait(self, keys, until):
        while True:
            try:
                message = self.wire.messages.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise Silence from None
            if message is None:
                raise self.wire.ended()
            if isinstance(message, Failure):
                raise message
            if "method" in message:
                if message.get("id") is not None:
                    self._answer(message)
            elif message.get("id") in keys:
                if "error" in message:
                    raise Rejected(message["id"], message["error"])
                result = message.get("result")
                return message["id"], result if isinstance(result, dict) else {}

    def _answer(self, request):
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "this client answers no questions"}
        self.wire.send(answer, {} if self.version is None else {"MCP-Protocol-Version": self.version}, None)

    def connect(self):
        """Asks in the era that the server is expected to speak, and then in the other one."""
        eras = ["modern", "legacy"] if SERVER["era"] == "modern" else ["legacy", "modern"]
        asked, refusal = {}, None
        for era in eras:
            if era == "modern":
                key = self._start(MODERN, "server/discover", {})
            else:
                params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": CLIENT}
                key = self._start(None, "initialize", params)
            asked[key] = era
            is_last = era == eras[-1]
            while asked:
                try:
                    key, result = self._wait(asked, self.deadline if is_last else min(self.deadline, time.monotonic() + SILENCE))
                except Silence:
                    if is_last:
                        raise Failure(TIME_UP, f"the server {NAME} did not answer in time") from None
                    break
                except Rejected as rejected:
                    asked.pop(rejected.key)
                    refusal = refusal or rejected
                    continue
                if self._settle(asked.pop(key), result):
                    return
        raise Failure(UNAVAILABLE, f"the server {NAME} speaks no version of MCP that is known here: {refusal}")

    def _settle(self, era, result):
        if era == "modern":
            self.version = MODERN
            return MODERN in result.get("supportedVersions", [])
        self.version = result.get("protocolVersion")
        if self.version in LEGACY:
            self._notify("notifications/initialized", {})
        return self.version in LEGACY

    def call(self, tool, arguments, mirrored):
        headers = {"Mcp-Name": header_value(tool)}
        for path, header in mirrored:
            value = arguments
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            if value is not None:
                headers[f"Mcp-Param-{header}"] = header_value(value if isinstance(value, str) else json.dumps(value))
        key = self._start(self.version, "tools/call", {"name": tool, "arguments": arguments}, headers)
        try:
            _, result = self._wait([key], self.deadline)
        except Silence:
            self.cancel(key)
            raise Failure(TIME_UP, f"{tool} has no result in time; it may have run") from None
        except KeyboardInterrupt:
            self.cancel(key)
            raise
        except Rejected as rejected:
            code = USAGE if rejected.number in (-32601, -32602) else TOOL_FAILED
            raise Failure(code, f"{tool} was rejected: {rejected}") from None
        if result.get("resultType", "complete") != "complete":
            raise Failure(UNAVAILABLE, f"{tool} asks for input, which this program cannot give", "call it with `pegboard call`")
        return result

    def cancel(self, key):
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}}
        # Over HTTP in the modern era, the end of the connection says it.
        if isinstance(self.wire, Process) or self.version != MODERN:
            self.wire.send(message, {"MCP-Protocol-Version": self.version}, FAREWELL)


def header_value(text):
    if re.fullmatch("[ -~]*", text) and text.strip() == text and not text.startswith("=?base64?"):
        return text
    return "=?base64?" + base64.b64encode(text.encode()).decode() + "?="


def shown(tool, result, folder):
    """The result as text; pictures and other files are saved in the folder, if there is one."""
    parts = []
    for number, block in enumerate(block for block in result.get("content") or [] if isinstance(block, dict)):
        kind, inner = block.get("type"), block.get("resource") if isinstance(block.get("resource"), dict) else {}
        data = block.get("data") or inner.get("blob")
        if isinstance(data, str):
            mime = str(block.get("mimeType") or inner.get("mimeType") or "application/octet-stream")
            content = base64.b64decode(data)
            parts.append(f"[{kind} {mime}, {len(content)} bytes]")
            if folder:
                os.makedirs(folder, exist_ok=True)
                path = os.path.join(folder, f"{tool}-{number + 1}{mimetypes.guess_extension(mime) or ''}")
                with open(path, "xb") as file:
                    file.write(content)
                print(f"saved {path}", file=sys.stderr)
        elif kind == "text" or "text" in inner:
            parts.append(str(block.get("text", inner.get("text", ""))))
        else:
            parts.append(f"[{kind} {block.get('uri') or inner.get('uri') or ''}]")
    if result.get("structuredContent") is not None and not result.get("isError"):
        return compact(result["structuredContent"])
    return "\n".join(parts)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_value(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"write JSON: {error}") from None


def boolean(text):
    if text in ("true", "false"):
        return text == "true"
    raise argparse.ArgumentTypeError("write true or false")


def seconds(text):
    value = float(text)
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError("write seconds, at most 86400")
    return value


TYPES = {"text": str, "integer": int, "number": float, "boolean": boolean, "json": json_value}


def options_of(definition):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json-output", action="store_true", help="print the whole result as JSON")
    parser.add_argument("--save", metavar="FOLDER", help="save pictures and other files of the result")
    parser.add_argument("--timeout", type=seconds, default=120.0, metavar="SECONDS", help="how long to wait (120)")
    parser.add_argument("--verbose", action="store_true", help="show what the server writes to its log")
    commands = parser.add_subparsers(dest="command", required=True, metavar="TOOL")
    for name, tool in definition.items():
        escaped = tool["help"].replace("%", "%%")
        # argparse formats a description only if this is in it.
        described = escaped if "%(prog)" in tool["help"] else tool["help"]
        command = commands.add_parser(name, help=escaped, description=described)
        for flag, destination, _, kind, options in tool["arguments"]:
            command.add_argument(flag, dest=destination, type=TYPES[kind], **options)
    return parser.parse_args()


def run(options):
    tool, given = TOOLS[options.command], vars(options)
    values = {key: given[destination] for _, destination, key, _, _ in tool["arguments"]}
    arguments = {key: value for key, value in values.items() if value is not None}
    wire = Http(options.timeout) if "url" in SERVER else Process(options.verbose)
    try:
        client = Client(wire, time.monotonic() + options.timeout)
        client.connect()
        result = client.call(tool["tool"], arguments, tool["headers"])
    finally:
        wire.close()
    text = compact(result) if options.json_output else shown(options.command, result, options.save)
    if result.get("isError") and not options.json_output:
        raise Failure(TOOL_FAILED, f"{tool['tool']} failed: {text}")
    sys.stdout.write((HIDDEN.sub("\ufffd", text) if sys.stdout.isatty() else text) + "\n")
    sys.stdout.flush()
    return TOOL_FAILED if result.get("isError") else 0


def main():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = options_of(TOOLS)
    try:
        return run(options)
    except Failure as failure:
        print(f"error: {HIDDEN.sub(chr(0xFFFD), str(failure))}", file=sys.stderr)
        if failure.hint:
            print(f"hint: {failure.hint}", file=sys.stderr)
        return failure.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNAVAILABLE
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
