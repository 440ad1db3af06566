// Calls a tool until a limit refuses it, then lists the tools with the same client. Arguments: the SDK (1 or 2), the URL, the token, the tool.

import { require } from './plan.mjs';

const [line, url, token, tool] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = line === '1'
    ? { ...require('@modelcontextprotocol/sdk/client/index.js'), ...require('@modelcontextprotocol/sdk/client/streamableHttp.js') }
    : require('@modelcontextprotocol/client');
// The second line finds out by itself that the server is modern.
const options = line === '1' ? { capabilities: {} } : { capabilities: {}, versionNegotiation: { mode: 'auto' } };
const client = new Client({ name: 'limited', version: '1.0.0' }, options);
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const call = () => client.callTool({ name: tool, arguments: { expression: '6 * 7' } });
await call();
let error = '';
try {
    const refused = await call();
    error = refused.isError ? refused.content[0].text : '';
} catch (thrown) {
    error = String(thrown);
}
const { tools } = await client.listTools();
console.log(JSON.stringify({ error, tools: tools.length }));
await client.close();
