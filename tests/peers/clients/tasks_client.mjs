// Calls a tool as a task on the TypeScript SDK 1.x and polls it to its end. Arguments: the URL, the tool.

import { require } from './plan.mjs';

const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { CallToolResultSchema } = require('@modelcontextprotocol/sdk/types.js');

const [url, tool] = process.argv.slice(2);
const client = new Client({ name: 'tasks', version: '1.0.0' }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const declared = client.getServerCapabilities().tasks ?? null;
// Notices which tools are tasks.
await client.listTools();
const seen = [];
let text = '';
const call = { name: tool, arguments: { topic: 'tides' } };
for await (const message of client.experimental.tasks.callToolStream(call, CallToolResultSchema, { task: { ttl: 60_000 } })) {
    seen.push(message.type);
    if (message.type === 'result') text = message.result.content[0].text;
    if (message.type === 'error') text = String(message.error);
}
console.log(JSON.stringify({ declared, seen, text }));
await client.close();
