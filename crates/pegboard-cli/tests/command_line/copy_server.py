"""An MCP server whose one tool has arguments that are not in alphabetical order. It answers with the arguments of a call."""

import json
import sys

TOOL = """{"name": "copy", "inputSchema": {"type": "object", "required": ["source", "destination"], "properties":
    {"source": {"type": "string"}, "destination": {"type": "string"}, "mode": {"type": "integer"}, "force": {"type": "boolean"}}}}"""

for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "copy", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [json.loads(TOOL)]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(request["params"]["arguments"], sort_keys=True)}]}
    else:
        error = {"code": -32601, "message": "unknown method"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
