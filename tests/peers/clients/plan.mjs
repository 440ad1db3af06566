// The command line of the Node clients, the plan that they carry out, and the
// report that they print. plan.py describes all three.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

// The packages live under target/, out of reach of a bare import from here.
const packages = new URL('../../../target/peers/npm/', import.meta.url);
export const require = createRequire(new URL('package.json', packages));

// The address of a file in an installed package, also of one that the package does not export.
export const installed = file => new URL(`node_modules/${file}`, packages);

// One run of a plan, with all its calls.
const LIMIT_MS = 120_000;
// How long tools are waited for, and how often they are listed meanwhile.
const TOOLS_MS = 60_000;
const PAUSE_MS = 200;

export class Report {
    protocol = '';
    tools = [];
    calls = [];
    resource = null;
    prompt = null;
    asked = [];
    progress = {};

    addCall(tool, result) {
        const text = result.content.map(blockText).join('\n');
        this.calls.push({ tool, text, failed: result.isError === true });
    }

    onProgress(tool) {
        return () => {
            this.progress[tool] = (this.progress[tool] ?? 0) + 1;
        };
    }
}

// The text of a content block, or what identifies a block without text.
function blockText(block) {
    switch (block.type) {
        case 'text':
            return block.text;
        case 'resource_link':
            return block.uri;
        case 'resource':
            return block.resource.text ?? block.resource.uri;
        default:
            return block.mimeType;
    }
}

function readPlan() {
    const { values, positionals } = parseArgs({
        options: { era: { type: 'string' }, plan: { type: 'string' }, url: { type: 'string' } },
        allowPositionals: true,
    });
    if (!['legacy', 'modern'].includes(values.era) || !values.plan || !values.url === !positionals.length) {
        throw new Error('usage: CLIENT --era legacy|modern --plan FILE (--url URL | -- COMMAND ARGUMENT...)');
    }
    const { tools = [], calls, resource, prompt, answer = {} } = JSON.parse(readFileSync(values.plan, 'utf8'));
    return { era: values.era, url: values.url, command: positionals, tools, calls, resource, prompt, answer };
}

// Lists tools until those of the plan are there, or for as long as servers may take to start.
export async function listUntilComplete(plan, list) {
    let names;
    for (let waited = 0; waited < TOOLS_MS; waited += PAUSE_MS) {
        names = (await list()).map(tool => tool.name);
        if (plan.tools.every(tool => names.includes(tool))) {
            break;
        }
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS));
    }
    return names;
}

// Runs `client(plan, report)` and prints the report.
export async function run(client) {
    const report = new Report();
    const limit = setTimeout(() => fail(new Error(`no end within ${LIMIT_MS} ms`)), LIMIT_MS);
    const fail = error => {
        console.error(error);
        console.error(`failed after ${report.calls.at(-1)?.tool ?? 'no call'}: ${error.message}`);
        process.exit(1);
    };
    try {
        await client(readPlan(), report);
    } catch (error) {
        fail(error);
    }
    clearTimeout(limit);
    process.stdout.write(JSON.stringify(report), () => process.exit(0));
}
