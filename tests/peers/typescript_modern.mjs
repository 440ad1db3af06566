// A small MCP server on the TypeScript SDK 2.x. It speaks 2026-07-28 and, to
// older clients, the handshake era.
//
//   node tests/peers/typescript_modern.mjs              stdio
//   node tests/peers/typescript_modern.mjs --http 0     HTTP; prints its address

import { createServer } from 'node:http';
import { createRequire } from 'node:module';

// The packages live under target/, out of reach of a bare import from here.
const require = createRequire(new URL('../../target/peers/npm/package.json', import.meta.url));
const { McpServer, acceptedContent, createMcpHandler, inputRequired } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { toNodeHandler } = require('@modelcontextprotocol/node');
const { z } = require('zod');

const text = value => ({ content: [{ type: 'text', text: value }] });

function peer() {
    const server = new McpServer(
        { name: 'typescript-modern', version: '1.0.0' },
        { instructions: 'A peer for tests: every tool answers the same way each time.' },
    );

    server.registerTool(
        'add',
        { description: 'Add two whole numbers.', inputSchema: z.object({ a: z.int(), b: z.int() }) },
        async ({ a, b }) => text(String(a + b)),
    );

    server.registerTool(
        'echo',
        { description: 'Say the text again.', inputSchema: z.object({ text: z.string() }) },
        async input => text(input.text),
    );

    server.registerTool(
        'weather',
        {
            description: 'Report the weather of a city, as text and as data.',
            inputSchema: z.object({ city: z.string() }),
            outputSchema: z.object({ city: z.string(), celsius: z.number() }),
        },
        async ({ city }) => {
            const report = { city, celsius: 21.5 };
            return { ...text(JSON.stringify(report)), structuredContent: report };
        },
    );

    server.registerTool('fail', { description: 'Always fail.' }, async () => {
        throw new Error('this tool always fails');
    });

    server.registerTool(
        'count',
        { description: 'Count up, reporting progress at each step.', inputSchema: z.object({ steps: z.int().max(100) }) },
        async ({ steps }, { mcpReq }) => {
            const progressToken = mcpReq._meta?.progressToken;
            for (let step = 1; step <= steps && progressToken !== undefined; step += 1) {
                await mcpReq.notify({
                    method: 'notifications/progress',
                    params: { progressToken, progress: step, total: steps, message: `step ${step}` },
                });
            }
            return text(`counted to ${steps}`);
        },
    );

    server.registerTool('greet', { description: 'Ask for a name, then greet it.' }, async ({ mcpReq }) => {
        const Name = z.object({ name: z.string() });
        const answer = acceptedContent(mcpReq.inputResponses, 'name', Name);
        if (answer) {
            return text(`Hello, ${answer.name}! State: ${mcpReq.requestState()}`);
        }
        if (mcpReq.inputResponses?.name) {
            return text('No name, no greeting.');
        }
        return inputRequired({
            inputRequests: { name: inputRequired.elicit({ message: 'What is your name?', requestedSchema: Name }) },
            requestState: 'asked-once',
        });
    });

    server.registerResource(
        'note',
        'note://welcome',
        { description: 'A short note.', mimeType: 'text/plain' },
        async uri => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Welcome to the peer.' }] }),
    );

    server.registerPrompt(
        'summarize',
        { description: 'Ask for a summary.', argsSchema: z.object({ topic: z.string() }) },
        async ({ topic }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Summarize ${topic}.` } }] }),
    );

    return server;
}

const [mode, port] = process.argv.slice(2);
if (mode === '--http') {
    const http = createServer(toNodeHandler(createMcpHandler(peer)));
    http.listen(Number(port), '127.0.0.1', () => {
        console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
    });
} else {
    serveStdio(peer);
}
