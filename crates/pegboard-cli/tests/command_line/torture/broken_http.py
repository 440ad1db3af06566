"""An MCP server over HTTP that checks neither Origin nor session, and answers notifications with 200."""

import http.server
import json

GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "broken", "version": "1"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = GREETING if message["method"] == "initialize" else {}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() if "id" in message else b""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if message["method"] == "initialize":
            self.send_header("mcp-session-id", "one")
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass

    def handle(self):
        # The client closes connections whenever it is done.
        try:
            super().handle()
        except ConnectionError:
            pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    print(f"listening on http://127.0.0.1:{server.server_port}/mcp", flush=True)
    server.serve_forever()
