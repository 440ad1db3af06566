"""A small MCP server that does everything right, except for the one fault that its argument names.

It serves both eras on stdio. `torture` must find the fault in the case of the same name.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

FAULT = sys.argv[1]
CASE = FAULT.split("/")[0]
VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
META = "io.modelcontextprotocol/"
lock = threading.Lock()
cancelled = {}
leaked = []


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


class Refused(Exception):
    def __init__(self, code, message="refused"):
        super().__init__(message)
        self.code = code


def tool(name, properties, required, **more):
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {
        "name": name,
        "description": f"The tool {name}",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True},
        **more,
    }


def tools():
    text = {"type": "string"}
    found = [
        tool("echo", {"text": text}, ["text"], outputSchema={"type": "object", "properties": {"text": text}}),
        tool("slow", {"steps": {"type": "integer", "minimum": 1, "maximum": 4, "default": 4}}, []),
    ]
    match CASE:
        case "names":
            found[0]["name"] = "echo this"
        case "schemas":
            found[0]["inputSchema"]["properties"]["text"] = {"type": "sting"}
        case "annotations" if FAULT == "annotations/name":
            found.append(tool("add", {}, []))
        case "annotations":
            hints = {"readOnlyHint": True, "destructiveHint": True}
            found.append(tool("delete_everything", {}, [], annotations=hints))
        case "stable-lists":
            found[0]["description"] += str(os.urandom(4))
        case "paging":
            found.append(found[0])
    return found


def valid(schema, arguments):
    kinds = {"string": str, "integer": int}
    for name in schema["required"]:
        if name not in arguments and CASE != "missing-argument":
            return False
    for name, value in arguments.items():
        declared = schema["properties"].get(name)
        if declared is None:
            if CASE != "extra-argument":
                return False
        elif not isinstance(value, kinds[declared["type"]]) and CASE != "wrong-type":
            return False
    return True


def call(ident, params):
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        if CASE == "wrong-params":
            return {"content": []}
        raise Refused(-32602)
    found = [one for one in tools() if one["name"] == name]
    if not found:
        if CASE == "unknown-tool":
            return {"content": []}
        raise Refused(-32602)
    text = arguments.get("text", "")
    size = len(text) if isinstance(text, str) else 0
    if (CASE == "huge-argument" and size > 100_000) or (CASE == "odd-text" and isinstance(text, str) and "\0" in text):
        os._exit(3)
    if CASE == "nested-argument" and isinstance(text, list):
        os._exit(3)
    if not valid(found[0]["inputSchema"], arguments):
        return {"content": [{"type": "text", "text": "invalid arguments"}], "isError": True}
    if name == "slow":
        token = params.get("_meta", {}).get("progressToken")
        event = cancelled.setdefault(json.dumps(ident), threading.Event())
        for step in range(arguments.get("steps", 4)):
            if CASE == "cancellation":
                time.sleep(0.3)
            elif CASE == "ping-during-call":
                time.sleep(0.5)
            elif event.wait(0.1):
                return None
            if token is not None:
                done = 1 if CASE == "progress" else step + 1
                note = {"progressToken": token, "progress": done}
                send({"jsonrpc": "2.0", "method": "notifications/progress", "params": note})
        return {"content": [{"type": "text", "text": "done"}]}
    if CASE == "results":
        return {"content": [{"type": "txt", "text": "a"}]}
    structured = {"text": 7} if CASE == "output-schema" else {"text": str(text)}
    return {"content": [{"type": "text", "text": str(text)[:100]}], "structuredContent": structured}


def listed(method, params):
    key = {"resources/templates/list": "resourceTemplates"}.get(method, method.split("/")[0])
    cursor = params.get("cursor")
    if cursor not in (None, "second") and not CASE == "invalid-cursor":
        raise Refused(-32602)
    if key == "tools":
        found = tools()
        if CASE == "invalid-cursor":
            return {"tools": found[:1], "nextCursor": "second"} if cursor != "second" else {"tools": found[1:]}
        page = found[1:] if cursor else found[:1]
        return {"tools": page} if cursor else {"tools": page, "nextCursor": "second"}
    items = {
        "resources": [{"uri": "demo://one", "name": "one"}],
        "resourceTemplates": [],
        "prompts": [{"name": "greet"}],
    }
    return {key: items[key]}


def handle(method, params, ident):
    modern = META + "protocolVersion" in params.get("_meta", {})
    if modern and params["_meta"][META + "protocolVersion"] != "2026-07-28" and CASE != "unknown-version":
        raise Refused(-32022)
    capabilities = {one: {} for one in ["tools", "resources", "prompts", "completions", "logging"]}
    if CASE == "undeclared":
        del capabilities["tools"]
    info = {"name": "broken", "version": "1"}
    if CASE == "list-changed":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    match method:
        case "initialize":
            wanted = params.get("protocolVersion")
            if CASE == "versions" and wanted != VERSIONS[0]:
                raise Refused(-32602)
            version = wanted if wanted in VERSIONS or CASE == "unknown-version" else VERSIONS[0]
            return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {} if CASE == "greeting" else info}
        case "server/discover" if modern:
            found = {"supportedVersions": ["2026-07-28"], "_meta": {META + "serverInfo": info}, "resultType": "complete"}
            return found if CASE == "greeting" else {**found, "capabilities": capabilities}
        case "ping" if not modern:
            return None if CASE == "ping" else {}
        case "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list":
            return listed(method, params)
        case "tools/call":
            return call(ident, params)
        case "resources/read":
            if params.get("uri") == "demo://one":
                return {"contents": [] if CASE == "resources" else [{"uri": "demo://one", "text": "1"}]}
            if CASE == "unknown-resource":
                return {"contents": []}
            raise Refused(-32602)
        case "prompts/get":
            if params.get("name") == "greet" or CASE == "unknown-prompt":
                return {"messages": []}
            raise Refused(-32602)
        case "completion/complete":
            return {"completion": {} if CASE == "completions" else {"values": []}}
        case "logging/setLevel" if not modern:
            if params.get("level") not in LEVELS and CASE != "log-level":
                raise Refused(-32602)
            return {}
    if CASE == "unknown-method":
        return {}
    raise Refused(-32601)


def answer(method, params, ident):
    if CASE == "leaks":
        leaked.append(open("/dev/null"))
    if CASE == "ids" and isinstance(ident, str):
        ident = ident.strip() or 1
    try:
        result = handle(method, params, ident)
    except Refused as refused:
        send({"jsonrpc": "2.0", "id": ident, "error": {"code": refused.code, "message": str(refused)}})
        return
    if result is not None or CASE == "ping":
        response = {"jsonrpc": "2.0", "id": ident, "result": result}
        send(response)
        if CASE == "parallel" and str(ident).startswith("p") or CASE == "parallel-calls" and str(ident).startswith("c"):
            send(response)


def read(line, begun):
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        if CASE == "malformed-json" or (CASE == "deep-nesting" and isinstance(error, RecursionError)):
            os._exit(3)
        send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "parse error"}})
        return
    if CASE == "large-message" and len(line) > 1_000_000:
        os._exit(3)
    is_request = isinstance(message, dict) and isinstance(message.get("method"), str)
    if isinstance(message, dict) and ("result" in message or "error" in message):
        if CASE == "stray-response":
            os._exit(3)
        return
    if not is_request:
        if CASE == "invalid-request":
            os._exit(3)
        send({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "invalid request"}})
        return
    method, params = message["method"], message.get("params", {})
    if "id" not in message:
        if not begun and CASE == "early-notification":
            os._exit(3)
        if method == "notifications/cancelled":
            if CASE == "cancel-unknown" and params["requestId"] in (99_999, "nobody"):
                os._exit(3)
            cancelled.setdefault(json.dumps(params["requestId"]), threading.Event()).set()
        elif CASE == "unknown-notification":
            send({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "unknown"}})
        return
    if message["id"] is None and CASE != "null-id":
        send({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "id is null"}})
        return
    if begun and method == "initialize" and CASE == "second-initialize":
        os._exit(3)
    if method == "tools/call" and CASE != "ping-during-call":
        threading.Thread(target=answer, args=(method, params, message["id"]), daemon=True).start()
    else:
        answer(method, params, message["id"])


def main():
    match CASE:
        case "stdout":
            print("Welcome!", flush=True)
        case "stderr":
            sys.stderr.write("x" * (2 << 20))
        case "sigterm":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "restart":
            with open(sys.argv[2], "a+", encoding="utf-8") as starts:
                starts.write("x")
                if starts.tell() > 4:
                    sys.exit("the port is taken")
    if FAULT in ("end-of-input/orphan", "end-of-input/daemon"):
        subprocess.Popen(
            ["/bin/sleep", "60"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=FAULT.endswith("daemon"),
        )
    begun = False
    if CASE == "split-message":
        # Reads pieces in place of lines.
        while piece := os.read(0, 65536):
            read(piece, begun)
            begun = True
        return
    for line in sys.stdin.buffer:
        read(line, begun)
        begun = True
    if FAULT == "end-of-input":
        signal.pause()


main()
