// Made by `pegboard generate ts demo`. Changes are lost when it is made again.

import { type Caller, ToolError, overHttp } from "./pegboard_calls.ts";

export * from "./pegboard_calls.ts";

/** The arguments of "calculate". */
export type CalculateArgs = {
  /** For example (2 + 3) * 4 or sqrt(2) ^ 2 */
  "expression": string;
};

/** The result of "calculate". */
export type CalculateResult = {
  /** The value of the expression */
  "value": number;
};

/** The arguments of "count_slowly". */
export type CountSlowlyArgs = {
  /** The pause before each step, in milliseconds */
  "delay_ms"?: number;
  /** How many steps to count */
  "n"?: number;
};

/** The result of "count_slowly". */
export type CountSlowlyResult = unknown;

/** The arguments of "draw". */
export type DrawArgs = {
  /** #rrggbb, or black, white, gray, red, orange, yellow, green, blue or purple */
  "color"?: string;
  /** Height in pixels */
  "height"?: number;
  /** What to draw; it fills the picture */
  "shape"?: "rectangle" | "ellipse";
  /** Width in pixels */
  "width"?: number;
};

/** The result of "draw". */
export type DrawResult = unknown;

/** The arguments of "echo". */
export type EchoArgs = {
  /** Any JSON value */
  "json"?: unknown;
  /** Any text */
  "text"?: string;
};

/** The result of "echo". */
export type EchoResult = {
  /** The JSON value that was given */
  "json"?: unknown;
  /** The text that was given */
  "text"?: string;
};

/** The arguments of "fail". */
export type FailArgs = {
  /** What the failure says */
  "message"?: string;
};

/** The result of "fail". */
export type FailResult = unknown;

/** The arguments of "now". */
export type NowArgs = {
  /** An IANA name such as Europe/Berlin, an offset such as +05:30, or UTC */
  "timezone"?: string;
};

/** The result of "now". */
export type NowResult = {
  /** RFC 3339 with milliseconds and the zone's offset */
  "iso": string;
  /** The zone that `iso` is written in */
  "timezone": string;
  /** Milliseconds since 1970-01-01T00:00:00Z */
  "unix_ms": number;
};

/** The arguments of "search_text". */
export type SearchTextArgs = {
  /** The text to look for, within one line */
  "query": string;
  /** Whether upper and lower case are the same */
  "ignore_case"?: boolean;
  /** Stop after this many matching lines */
  "max_matches"?: number;
};

/** The result of "search_text". */
export type SearchTextResult = unknown;

/** The tools of the server "demo". */
export class Demo {
  readonly #caller: Caller;

  constructor(caller: Caller = overHttp()) {
    this.#caller = caller;
  }

  /** Works out an arithmetic expression: + - * / % ^, parentheses, unary minus, and the functions sqrt(x), abs(x), round(x), min(a, b, …) and max(a, b, …). Numbers are doubles. ^ binds tightest and to the right, so -2^2 is -4; % is the remainder and has the sign of its left side. */
  async calculate(args: CalculateArgs): Promise<CalculateResult> {
    return (await this.#call("demo.calculate", args)) as CalculateResult;
  }

  /** Counts from 1 to n with a pause before each step. Reports progress after every step if the caller asked for progress, and stops at once when it is cancelled. Use it to try out slow calls. */
  async countSlowly(args: CountSlowlyArgs = {}): Promise<CountSlowlyResult> {
    return (await this.#call("demo.count_slowly", args)) as CountSlowlyResult;
  }

  /** Draws a PNG picture of one shape in one colour on white. */
  async draw(args: DrawArgs = {}): Promise<DrawResult> {
    return (await this.#call("demo.draw", args)) as DrawResult;
  }

  /** Gives back the text and the JSON value it is given, unchanged. At least one of the two is needed. */
  async echo(args: EchoArgs = {}): Promise<EchoResult> {
    return (await this.#call("demo.echo", args)) as EchoResult;
  }

  /** Always fails, with the message it is given. Use it to see how a failed call is shown. */
  async fail(args: FailArgs = {}): Promise<FailResult> {
    return (await this.#call("demo.fail", args)) as FailResult;
  }

  /** Tells the current date and time, in UTC or in a time zone of your choice. Use it whenever the answer depends on today's date. */
  async now(args: NowArgs = {}): Promise<NowResult> {
    return (await this.#call("demo.now", args)) as NowResult;
  }

  /** Finds the lines that contain a piece of text in the files of the server's folder and its subfolders. The text is taken literally, not as a pattern. Gives `path:line: text` for each matching line. Skips hidden files, symbolic links, node_modules, target, binary files and files over 1 MiB. */
  async searchText(args: SearchTextArgs): Promise<SearchTextResult> {
    return (await this.#call("demo.search_text", args)) as SearchTextResult;
  }

  async #call(name: string, args: object): Promise<unknown> {
    const record = await this.#caller(name, args);
    if (record.status !== "done" || record.is_error) throw new ToolError(record);
    return record.structured ?? record.text;
  }
}
