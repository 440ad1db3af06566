"""The server that `scripts/weight` calls: `echo.py stdio TOOLS [NUMBER]`, where the number only makes command lines differ, or
`echo.py http TOOLS [ADDRESSES]`. A call's argument `n` is the length of the text in the result. Only the program that calls it is weighed,
so it may be slow."""

import http.server
import json
import sys
import threading

RECORD = '{"file": "docs/guide.md", "line": 7, "words": "a board with pegs, and on each peg a tool"}\n'
PAGE = 500


def tool(number):
    properties = {
        "n": {"type": "integer", "minimum": 0, "description": "How many bytes"},
        "kind": {"type": "string", "enum": ["plain", "records"], "description": "What the text looks like"},
        "paths": {"type": "array", "items": {"type": "string"}, "description": "Where to look"},
        "deep": {"type": "boolean", "default": False},
    }
    return {
        "name": f"tool_{number:05}",
        "description": f"Returns as much text as is asked for. This is number {number} of many, and each describes itself so that a model can choose.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["n"]},
        "annotations": {"readOnlyHint": True},
    }


def respond(request, tools):
    """The response to a request; `None` for a notification."""
    if "id" not in request:
        return None
    params = request.get("params", {})
    about = {"name": "echo", "version": "1"}
    match request["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            first = int(params.get("cursor", 0))
            result = {"tools": [tool(number) for number in range(first, min(first + PAGE, tools))]}
            if first + PAGE < tools:
                result["nextCursor"] = str(first + PAGE)
        case "tools/call":
            size = params["arguments"]["n"]
            result = {"content": [{"type": "text", "text": (RECORD * (size // len(RECORD) + 1))[:size]}], "isError": False}
        case "ping":
            result = {}
        case method:
            error = {"code": -32601, "message": f"no method {method}"}
            return {"jsonrpc": "2.0", "id": request["id"], "error": error}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def serve_stdio(tools):
    for line in sys.stdin:
        if response := respond(json.loads(line), tools):
            print(json.dumps(response), flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = respond(request, self.server.tools)
        body = json.dumps(response).encode() if response else b""
        head = f"HTTP/1.1 {200 if response else 202} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


def serve_http(tools, count):
    """Serves at this many addresses, and prints them as a list in JSON."""
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(count)]
    for server in servers:
        server.tools = tools
    print(json.dumps([f"http://127.0.0.1:{server.server_address[1]}/mcp" for server in servers]), flush=True)
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    wire, tools, number = sys.argv[1], int(sys.argv[2]), int((*sys.argv[3:], "1")[0])
    if wire == "http":
        serve_http(tools, number)
    else:
        serve_stdio(tools)
