// A client that keeps one session as long as its stdin is open: each line names a tool, which is called at the URL of the first argument with the token of the
// second one. The third one is the version of the TypeScript SDK: 1 or 2. Prints one line for each call: the text of its result. It never shakes hands again:
// a lost session ends it.

import { createInterface } from 'node:readline';

import { require } from './plan.mjs';

const [url, token, version] = process.argv.slice(2);
const modules = {
    1: ['@modelcontextprotocol/sdk/client/index.js', '@modelcontextprotocol/sdk/client/streamableHttp.js'],
    2: ['@modelcontextprotocol/client', '@modelcontextprotocol/client'],
}[version];
const [{ Client }, { StreamableHTTPClientTransport }] = modules.map(module => require(module));

const options = version === '2' ? { versionNegotiation: { mode: 'legacy' } } : {};
const client = new Client({ name: 'session-client', version: '1.0.0' }, { capabilities: {}, ...options });
// A kept connection that has just broken off is no answer of the gateway, and the next one works.
async function call(name) {
    try {
        return await client.callTool({ name, arguments: {} });
    } catch (error) {
        if (error.message !== 'fetch failed') {
            throw error;
        }
        return client.callTool({ name, arguments: {} });
    }
}

const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
for await (const line of createInterface({ input: process.stdin })) {
    const result = await call(line.trim());
    console.log(result.content[0].text);
}
await client.close();
