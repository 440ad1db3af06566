// Made by `pegboard generate ts caller`. Changes are lost when it is made again.

import { type Caller, ToolError, overHttp } from "./pegboard_calls.ts";

export * from "./pegboard_calls.ts";

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
