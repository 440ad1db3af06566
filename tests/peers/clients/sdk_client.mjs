// A client on the TypeScript SDK 1.x, which speaks the handshake era only. See plan.mjs for its use.

import { listUntilComplete, require, run } from './plan.mjs';

const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { ElicitRequestSchema } = require('@modelcontextprotocol/sdk/types.js');

run(async (plan, report) => {
    if (plan.era !== 'legacy') {
        throw new Error('the TypeScript SDK 1.x speaks the handshake era only');
    }
    const client = new Client({ name: 'sdk-client', version: '1.0.0' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
        report.asked.push(params.message);
        return { action: 'accept', content: plan.answer };
    });
    const transport = plan.url
        ? new StreamableHTTPClientTransport(new URL(plan.url))
        : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1) });
    // It tells the negotiated version only to its transport.
    const setVersion = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
        report.protocol = version;
        setVersion?.(version);
    };
    await client.connect(transport);
    await client.ping();
    report.tools = await listUntilComplete(plan, async () => {
        const tools = [];
        let cursor;
        do {
            const page = await client.listTools({ cursor });
            tools.push(...page.tools);
            cursor = page.nextCursor;
        } while (cursor);
        return tools;
    });
    for (const { tool, arguments: args } of plan.calls) {
        const options = { onprogress: report.onProgress(tool) };
        report.addCall(tool, await client.callTool({ name: tool, arguments: args }, undefined, options));
    }
    if (plan.resource) {
        report.resource = (await client.readResource({ uri: plan.resource })).contents[0].text;
    }
    if (plan.prompt) {
        report.prompt = (await client.getPrompt(plan.prompt)).messages[0].content.text;
    }
    await transport.terminateSession?.();
    await client.close();
});
