// Made by `pegboard generate ts`. Changes are lost when it is made again.
// Calls tools, for all wrappers in this folder.

/** The record of a call, as `pegboard call -o json` prints it. */
export interface CallRecord {
  status: "done" | "tool_failed" | "refused" | "lost";
  is_error: boolean;
  text: string;
  content: unknown[];
  structured: unknown;
  hint: string | null;
}

/** Calls a tool by its full name. */
export type Caller = (name: string, args: object) => Promise<CallRecord>;

/** A call that has not succeeded. */
export class ToolError extends Error {
  readonly record: CallRecord;

  constructor(record: CallRecord) {
    super(record.text);
    this.record = record;
  }
}

/** Calls tools at a running `pegboard serve`. */
export function overHttp(url = "http://127.0.0.1:7337", token?: string): Caller {
  return async (name, args) => {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    const body = JSON.stringify({ name, arguments: args });
    const sent = fetch(`${url}/api/v1/mcp/call`, { method: "POST", headers, body });
    const response = await sent.catch((cause) => {
      const advice = "start `pegboard serve` there, or call tools with `overCommand()`";
      throw new Error(`no connection to ${url} (${cause}); ${advice}`);
    });
    const document = await response.json().catch(() => null);
    // A failed call has its record as the body. In other errors, the status is a number.
    if (typeof document?.status !== "string") throw new Error(document?.detail ?? `HTTP ${response.status}`);
    return document as CallRecord;
  };
}

/** Calls tools by running `pegboard`, in Node. */
export function overCommand(program = "pegboard", options: string[] = []): Caller {
  return async (name, args) => {
    const { execFile } = await import("node:child_process" as string);
    const words = ["call", name, "--json", "-", "-o", "json", ...options];
    return new Promise((resolve, reject) => {
      const child = execFile(program, words, { maxBuffer: 64 << 20 }, (error: Error | null, out: string) => {
        try {
          resolve(JSON.parse(out) as CallRecord);
        } catch {
          reject(error ?? new Error("pegboard printed no JSON"));
        }
      });
      // A program that ends without reading its arguments has printed why.
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify(args));
    });
  };
}
