"""An authorization server and an MCP server behind it, each on a port of its own, on the Python SDK 2.x.

    python tests/peers/python_sdk_oauth.py --http 0     prints the address of the MCP server

A user is signed in at once. Access tokens live for `--lifetime` seconds; refresh tokens are replaced.
"""

import argparse
import asyncio
import secrets
import socket
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette

SCOPE = "user"


class Provider:
    """Keeps clients, codes and tokens in memory."""

    def __init__(self, lifetime: int) -> None:
        self.lifetime = lifetime
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            client_id=client.client_id,
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self.issue(client.client_id, scopes or refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found and found.expires_at > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def issue(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, resource=resource,
            expires_at=int(time.time()) + self.lifetime,
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=self.lifetime, scope=" ".join(scopes)
        )


def listen() -> tuple[socket.socket, str]:
    """A socket that listens, and its address, so that a reader of the address may connect at once."""
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


async def main(lifetime: int) -> None:
    provider = Provider(lifetime)
    (issuer_socket, issuer), (server_socket, base) = listen(), listen()
    settings = AuthSettings(
        issuer_url=issuer, resource_server_url=f"{base}/mcp", required_scopes=[SCOPE], validate_token_resource=True
    )
    routes = create_auth_routes(
        provider,
        issuer_url=settings.issuer_url,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
        ),
        revocation_options=RevocationOptions(enabled=True),
    )
    server = MCPServer("python-sdk-oauth", log_level="WARNING", token_verifier=provider, auth=settings)

    @server.tool(structured_output=False)
    def add(a: int, b: int) -> str:
        """Add two whole numbers."""
        return str(a + b)

    quiet = {"log_level": "warning"}
    print(f"listening on {base}/mcp", flush=True)
    await asyncio.gather(
        uvicorn.Server(uvicorn.Config(Starlette(routes=routes), **quiet)).serve(sockets=[issuer_socket]),
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), **quiet)).serve(sockets=[server_socket]),
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--http", type=int, metavar="PORT", help="ignored: both ports are free ones")
    options.add_argument("--lifetime", type=int, default=3600)
    asyncio.run(main(options.parse_args().lifetime))
