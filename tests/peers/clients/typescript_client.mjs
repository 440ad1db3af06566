// A client on the TypeScript SDK 2.x, in both eras. See plan.mjs for its use.

import { listUntilComplete, require, run } from './plan.mjs';

const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

run(async (plan, report) => {
    const client = new Client(
        { name: 'typescript-client', version: '1.0.0' },
        {
            capabilities: { elicitation: { form: {} } },
            versionNegotiation: { mode: plan.era === 'modern' ? 'auto' : 'legacy' },
        },
    );
    client.setRequestHandler('elicitation/create', async ({ params }) => {
        report.asked.push(params.message);
        return { action: 'accept', content: plan.answer };
    });
    const transport = plan.url
        ? new StreamableHTTPClientTransport(new URL(plan.url))
        : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1) });
    await client.connect(transport);
    report.protocol = client.getNegotiatedProtocolVersion();
    // It reads all pages by itself.
    report.tools = await listUntilComplete(plan, async () => (await client.listTools()).tools);
    for (const { tool, arguments: args } of plan.calls) {
        const result = await client.callTool({ name: tool, arguments: args }, { onprogress: report.onProgress(tool) });
        report.addCall(tool, result);
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
