// The Inspector's command line, run once per request of the plan, in both eras.
// All runs share this process: starting Node for each costs a second of a core.
// See plan.mjs for its use.

import { installed, listUntilComplete, run } from './plan.mjs';

const { runCli } = await import(installed('@modelcontextprotocol/inspector/clients/cli/build/index.js'));

// Runs the command line and returns the result in the document that it prints.
async function inspect(plan, ...request) {
    const target = plan.url ? ['--server-url', plan.url, '--transport', 'http'] : ['--', ...plan.command];
    // Options that take several values come first, so that they do not take the target.
    const options = [...request, '--format', 'json', '--quiet', '--protocol-era', plan.era];
    const printed = [];
    const write = process.stdout.write;
    process.stdout.write = (text, ...rest) => {
        printed.push(String(text));
        rest.find(item => typeof item === 'function')?.();
        return true;
    };
    try {
        await runCli(['node', 'inspector-cli', ...options, ...target]);
    } catch (error) {
        // It prints the result of a tool that failed, and fails then as well.
        if (!printed.length) {
            throw error;
        }
    } finally {
        process.stdout.write = write;
    }
    return JSON.parse(printed.join('')).result;
}

run(async (plan, report) => {
    report.protocol = (await inspect(plan, '--method', 'initialize')).protocolVersion;
    report.tools = await listUntilComplete(plan, async () => (await inspect(plan, '--method', 'tools/list')).tools);
    for (const { tool, arguments: args } of plan.calls) {
        const named = ['--tool-name', tool, '--tool-args-json', JSON.stringify(args)];
        report.addCall(tool, await inspect(plan, '--method', 'tools/call', ...named));
    }
    if (plan.resource) {
        const read = await inspect(plan, '--method', 'resources/read', '--uri', plan.resource);
        report.resource = read.contents[0].text;
    }
    if (plan.prompt) {
        const pairs = Object.entries(plan.prompt.arguments).map(([key, value]) => `${key}=${value}`);
        const named = ['--prompt-name', plan.prompt.name, ...pairs.flatMap(pair => ['--prompt-args', pair])];
        report.prompt = (await inspect(plan, '--method', 'prompts/get', ...named)).messages[0].content.text;
    }
});
