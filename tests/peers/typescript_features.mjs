// An MCP server on the TypeScript SDK 2.x that wants and tells everything the
// era without a handshake allows.
//
//   node tests/peers/typescript_features.mjs              stdio
//   node tests/peers/typescript_features.mjs --http 0     HTTP; prints its address

import { createServer } from 'node:http';
import { createRequire } from 'node:module';

// The packages live under target/, out of reach of a bare import from here.
const require = createRequire(new URL('../../target/peers/npm/package.json', import.meta.url));
const { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired, inputResponse } =
    require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { toNodeHandler } = require('@modelcontextprotocol/node');
const { z } = require('zod');

const text = value => ({ content: [{ type: 'text', text: value }] });
const Colour = z.object({ colour: z.string() });
const colourOf = mcpReq => acceptedContent(mcpReq.inputResponses, 'colour', Colour)?.colour;
const wantsColour = requestState =>
    inputRequired({
        inputRequests: { colour: inputRequired.elicit({ message: 'Which colour?', requestedSchema: Colour }) },
        requestState,
    });

// Over HTTP every request has a server of its own, so news go through the handler.
let handler;
let isGrown = false;
let givenUp = 0;

const addGrown = server =>
    server.registerTool('grown', { description: 'Not there from the beginning.' }, async () => text('grown'));

function peer() {
    const server = new McpServer(
        { name: 'typescript-features', version: '1.0.0' },
        { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } },
    );

    server.registerTool('log', { description: 'Write to the log at two levels.' }, async ({ mcpReq }) => {
        await mcpReq.log('debug', 'a whisper');
        await mcpReq.log('warning', 'a warning', 'features');
        return text('logged');
    });

    server.registerTool('touch', { description: 'Say that a resource has changed.' }, async () => {
        const uri = 'note://shelf/book';
        await (handler ? handler.notify.resourceUpdated(uri) : server.server.sendResourceUpdated({ uri }));
        return text('touched');
    });

    server.registerTool('linger', { description: 'Wait until nobody waits for it any more.' }, async ({ mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
        await new Promise(resolve => mcpReq.signal.addEventListener('abort', resolve));
        givenUp += 1;
        return text('waited');
    });

    server.registerTool('count_given_up', { description: 'Tell how many calls were given up.' }, async () =>
        text(String(givenUp)),
    );

    server.registerTool('grow', { description: 'Offer one more tool.' }, async () => {
        isGrown = true;
        await (handler ? handler.notify.toolsChanged() : addGrown(server));
        return text('growing');
    });
    if (isGrown) {
        addGrown(server);
    }

    server.registerTool('ask_model', { description: 'Have the client ask its model.' }, async ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'answer');
        if (answer.kind === 'sampling') {
            return text(`the model says ${answer.result.content.text}`);
        }
        const messages = [{ role: 'user', content: { type: 'text', text: 'six by seven?' } }];
        return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 100 }) } });
    });

    server.registerTool('ask_roots', { description: 'Have the client list its roots.' }, async ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'roots');
        if (answer.kind === 'roots') {
            return text(`the roots are ${answer.roots.map(root => root.uri).join(', ')}`);
        }
        return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    });

    server.registerTool('ask_visit', { description: 'Send the user to a page.' }, async ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'page');
        if (answer.kind === 'elicit') {
            return text(`the user said ${answer.action}`);
        }
        const page = inputRequired.elicitUrl({ message: 'Sign in.', url: 'https://example.org/sign-in' });
        return inputRequired({ inputRequests: { page }, requestState: 'visit' });
    });

    const starting = values => value => values.filter(other => other.startsWith(value));
    server.registerResource(
        'books',
        new ResourceTemplate('note://{shelf}/{book}', { list: undefined, complete: { shelf: starting(['shelf', 'shed']) } }),
        { description: 'One of many notes.', mimeType: 'text/plain' },
        async (uri, { shelf, book }) => ({ contents: [{ uri: uri.href, text: `${book} on ${shelf}` }] }),
    );
    server.registerResource(
        'paint',
        new ResourceTemplate('paint://{name}', { list: undefined }),
        { description: 'A note that needs a colour first.', mimeType: 'text/plain' },
        async (uri, { name }, { mcpReq }) => {
            const colour = colourOf(mcpReq);
            return colour ? { contents: [{ uri: uri.href, text: `${name} is ${colour}` }] } : wantsColour('paint');
        },
    );

    server.registerPrompt(
        'poem',
        {
            description: 'A prompt that needs a colour first.',
            argsSchema: z.object({ topic: completable(z.string(), starting(['tea', 'time'])) }),
        },
        async ({ topic }, { mcpReq }) => {
            const colour = colourOf(mcpReq);
            if (!colour) {
                return wantsColour('poem');
            }
            return { messages: [{ role: 'user', content: { type: 'text', text: `A ${colour} poem about ${topic}.` } }] };
        },
    );

    return server;
}

const [mode, port] = process.argv.slice(2);
if (mode === '--http') {
    handler = createMcpHandler(peer);
    const http = createServer(toNodeHandler(handler));
    http.listen(Number(port), '127.0.0.1', () => {
        console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
    });
} else {
    serveStdio(peer);
}
