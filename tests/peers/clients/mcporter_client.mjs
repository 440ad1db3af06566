// A client on mcporter, which speaks the handshake era only and cannot be asked anything. See plan.mjs for its use.

import { installed, listUntilComplete, run } from './plan.mjs';

const { createRuntime } = await import(installed('mcporter/dist/index.js'));

run(async (plan, report) => {
    const command = plan.url
        ? { kind: 'http', url: new URL(plan.url) }
        : { kind: 'stdio', command: plan.command[0], args: plan.command.slice(1), cwd: process.cwd() };
    const runtime = await createRuntime({ servers: [{ name: 'board', command }] });
    // Its transport for processes does not keep the version.
    report.protocol = (await runtime.connect('board')).transport.protocolVersion ?? '';
    report.tools = await listUntilComplete(plan, () => runtime.listTools('board'));
    for (const { tool, arguments: args } of plan.calls) {
        report.addCall(tool, await runtime.callTool('board', tool, { args }));
    }
    if (plan.resource) {
        report.resource = (await runtime.readResource('board', plan.resource)).contents[0].text;
    }
    await runtime.close();
});
