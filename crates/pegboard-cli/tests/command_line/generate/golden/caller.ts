// Made by `pegboard generate ts caller`. Changes are lost when it is made again.

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
    const response = await fetch(`${url}/api/v1/mcp/call`, { method: "POST", headers, body });
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

/** The arguments of "* / throw 1; /*". */
export type Throw1Args = Record<string, unknown>;

/** The result of "* / throw 1; /*". */
export type Throw1Result = unknown;

/** The arguments of "a2". */
export type A2Args = Record<string, unknown>;

/** The result of "a2". */
export type A2Result = unknown;

/** The arguments of "a_2". */
export type A22Args = Record<string, unknown>;

/** The result of "a_2". */
export type A22Result = unknown;

/** The arguments of "caller". */
export type CallerArgs = Record<string, unknown>;

/** The result of "caller". */
export type CallerResult = unknown;

/** The arguments of "use". */
export type UseArgs = {
  /** * / throw 1; /* */
  "type": "self" | "Self" | "" | "an \"odd\" \\ word";
  "a2"?: unknown;
  "a_2"?: Record<string, boolean>;
  "help"?: Array<string | number>;
  "self"?: {
    "fn"?: string | null;
    "x y"?: number;
  };
  "ünï\u001b"?: boolean;
};

/** The result of "use". */
export type UseResult = {
  /** * / throw 1; /* */
  "type": "self" | "Self" | "" | "an \"odd\" \\ word";
  "a2"?: unknown;
  "a_2"?: Record<string, boolean>;
  "help"?: Array<string | number>;
  "self"?: {
    "fn"?: string | null;
    "x y"?: number;
  };
  "ünï\u001b"?: boolean;
};

/** The arguments of "where". */
export type WhereArgs = Record<string, unknown>;

/** The result of "where". */
export type WhereResult = unknown;

/** The tools of the server "caller". */
export class Caller2 {
  readonly #caller: Caller;

  constructor(caller: Caller = overHttp()) {
    this.#caller = caller;
  }

  /** * / throw 1; /* */
  async throw1(args: Throw1Args = {}): Promise<Throw1Result> {
    return (await this.#call("caller.*/ throw 1; /*", args)) as Throw1Result;
  }

  /** A scripted tool. */
  async a2(args: A2Args = {}): Promise<A2Result> {
    return (await this.#call("caller.a2", args)) as A2Result;
  }

  /** A scripted tool. */
  async a22(args: A22Args = {}): Promise<A22Result> {
    return (await this.#call("caller.a_2", args)) as A22Result;
  }

  /** A scripted tool. */
  async caller(args: CallerArgs = {}): Promise<CallerResult> {
    return (await this.#call("caller.caller", args)) as CallerResult;
  }

  /** '''* / throw 1; /* ''' */
  async use_(args: UseArgs): Promise<UseResult> {
    return (await this.#call("caller.use", args)) as UseResult;
  }

  /** A scripted tool. */
  async where_(args: WhereArgs = {}): Promise<WhereResult> {
    return (await this.#call("caller.where", args)) as WhereResult;
  }

  async #call(name: string, args: object): Promise<unknown> {
    const record = await this.#caller(name, args);
    if (record.status !== "done" || record.is_error) throw new ToolError(record);
    return record.structured ?? record.text;
  }
}
