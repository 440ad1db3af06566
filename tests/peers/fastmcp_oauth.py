"""An MCP server with FastMCP's own authorization server on the same port.

    python tests/peers/fastmcp_oauth.py --http 0     prints its address
"""

import argparse
import socket

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider


def serve(port: int) -> None:
    """Serve on a loopback port; 0 takes a free one."""
    listener = socket.create_server(("127.0.0.1", port))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider = InMemoryOAuthProvider(
        base_url=base,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["user"]),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["user"],
    )
    server = FastMCP("fastmcp-oauth", auth=provider)

    @server.tool
    def add(a: int, b: int) -> str:
        """Add two whole numbers."""
        return str(a + b)

    app = server.http_app(path="/mcp")
    print(f"listening on {base}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--http", type=int, default=0, metavar="PORT")
    serve(options.parse_args().http)
