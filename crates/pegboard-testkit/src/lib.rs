//! Fake MCP servers for tests: scriptable, on every transport, in both protocol eras, healthy or with chosen faults.
//!
//! They speak MCP in raw JSON and do not depend on the library under test.
//!
//! ```
//! use pegboard_testkit::{Era, FakeServer, Fault, Tool, When};
//!
//! let fake = FakeServer::new("k8s")
//!     .era(Era::Both)
//!     .tool(Tool::new("get_pods").read_only().answers_text("pod-1"))
//!     .tool(Tool::new("delete_pod").destructive().echoes_nonce())
//!     .fault_on(When::tool("delete_pod").nth(2), Fault::DiesAfterExecuting { code: 1 });
//! assert_eq!(fake.script().tools.len(), 2);
//! ```
//!
//! A client connects to it in memory, for example a board of Pegboard through a `dialer` that calls [`MemoryHandle::connect`].
//!
//! # Forms
//!
//! | call | returns | notes |
//! |---|---|---|
//! | `fake.connect()` | `(DuplexStream, MemoryHandle)` | one message per line; works with tokio's paused time |
//! | `handle.connect()`, `handle.kill()` | another `DuplexStream`; ends all connections | each connection counts as a start |
//! | `fake.command()` | `(PathBuf, Vec<String>)` | a process on stdio; build it first: `cargo build -p pegboard-testkit` |
//! | `fake.arguments()` | `Vec<String>` | for a program that starts itself as the server with [`serve_if_asked`] |
//! | `fake.command_with_file(path)` | the same | the script in a file, for long scripts |
//! | `fake.serve_http().await?` | `NetHandle` | streamable HTTP at `handle.url()` = `http://127.0.0.1:PORT/mcp` |
//! | `fake.serve_sse().await?` | `NetHandle` | HTTP with SSE of 2024-11-05 at `…/sse` |
//! | `fake.serve_ws().await?` | `NetHandle` | WebSocket, subprotocol `mcp`, at `ws://…/mcp` |
//! | `fake-mcp-server --script JSON --listen 127.0.0.1:0 --transport http\|sse\|ws` | a process | prints `listening on URL` |
//!
//! Every handle in the test's own process ([`MemoryHandle`], [`NetHandle`]) offers what [`Control`] has: `requests()`,
//! `count(method)`, `wait_for(method, n).await`, `starts()`, `listeners()`, `open_gate(name)`, `change(|script| …)`,
//! `notify(method, params).await`, `tools_changed().await`. A [`NetHandle`] adds `url()`, `address()`, `sessions()`,
//! `forget_sessions()`, `stop().await`, `restart().await?` (same port, no sessions) and `died().await`.
//! For a process, name a log file with `fake.log(path)` and read it with [`read_log`]: `spawned` holds a process id
//! per start, `requests` what was [`Received`].
//!
//! [`refused_address`] returns a port that refuses connections, [`stalled_listener`] one that accepts and never sends a byte.
//!
//! # What a server offers
//!
//! `.era(Era)`, `.version("2025-06-18")`, `.versions(&[…])`, `.tool(Tool)`, `.tools(…)`, `.resource(uri, text)`, `.blob(uri, type, base64)`,
//! `.prompt(name, text)`, `.instructions(text)`, `.capabilities(json)`, `.pages_of(n)`, `.cached(ttl_ms, scope)`,
//! `.on_initialize(Refusal)`, `.on_discover(Refusal)`, `.streams()`, `.http(HttpStyle)`, `.bearer(token)`,
//! `.ignores_cancel()`, `.ledger(path)`, `.log(path)`, `.fault(Fault)`, `.fault_on(When, Fault)`,
//! `.then_after(starts, FakeServer)` for other behaviour from a later start on.
//!
//! Also `.resources(…)`, `.template(…)` and `.prompts(…)` with objects that say more: see [`Script`]. [`everything`] is a server with a
//! tool for each kind of exchange; [`conformance`] is the one that the official conformance suite calls, and
//! `fake-mcp-server conformance --era legacy|modern|both --transport stdio|http --port PORT` runs it as a process.
//!
//! A [`Tool`] is its definition (`description`, `schema`, `output_schema`, `hint`, `read_only`, `idempotent`,
//! `destructive`, `mirrors(argument, header)`, `with(key, value)`) and its answer: `answers_text`, `answers_blocks`
//! with [`Block`]s, `answers_structured`, `fails_with` (isError), `refuses(code, message)`, `echoes`, `echoes_nonce`,
//! `shows_env`, `shows_cwd`, `shows_pid`, `shows_caller`, `answers(Answer)`. In between: `after(Duration)` or an argument `delay_ms`,
//! `progress(n, every)`, `asks(Ask)` (legacy), `needs_input(rounds)` (modern), `form(schema)`, `waits_at(gate)`; instead of an answer: `runs_as_task()`.
//! Subscriptions (legacy) and completions are served if the capabilities declare them.
//!
//! In both eras alike:
//!
//! | call | in the script | meaning |
//! |---|---|---|
//! | `asks_for([Question…])` | `questions: [[{key, method, params}]]` | one round of [`Question`]s (form, URL, sampling, roots): legacy by requests whose id is the key, modern by `input_required` with a `requestState` that is checked when it comes back. The answers are appended to the result |
//! | `logs(level, texts, every)` | `logs: [{level, text, delay_ms}]` | log messages, from the level on that the client set or the request names |
//! | `causes(Effect)` | `effects: [{toggle_tool}, {toggle_prompt}, {set_resource: {uri, text}}, {finish_task}]` | changes the lists or a resource and notifies the clients that want to know |
//! | `after(time)` | `delay_ms` | a call that the client cancels meanwhile is in the log as `$cancelled` |
//!
//! # Faults
//!
//! Each [`Fault`] describes itself in one line. Without a [`When`] it applies to its usual requests:
//! handshake faults to `initialize` and `server/discover`, list faults to `tools/list`, the others to `tools/call`.
//! `When::method(m)`, `When::tool(t)`, `When::always()` choose others; `.nth(n)`, `.first(n)`, `.after(n)` count.
//!
//! * Process: `SlowStart`, `ExitsAtStart`, `Prompts`, `NoiseAtStart`, `SpawnsChildren`, `ForksAndExits`,
//!   `FloodsStderr`, `IgnoresTerm`, `IgnoresEof`, `OutlivesParent`. See [`read_pids`], [`is_alive`], [`kill`].
//! * Handshake: `SilentHandshake`, `ExitsAtHandshake`, `DiesIdle`.
//! * Any request: `NeverAnswers`, `DiesBeforeExecuting`, `DiesAfterExecuting`, `DiesWhileAnswering`, `ClosesOutput`,
//!   `StopsReading`, `LateAnswer`, `AnswersTwice`, `StrayAnswers`, `WrongId`, `StringId`, `FloatId`, `MissingId`,
//!   `NullId`, `CutThenEof`, `Oversized`, `EndlessLine`, `InvalidUtf8`, `NulByte`, `Bom`, `Crlf`, `LineSeparator`,
//!   `Nested`, `DuplicateKeys`, `CaseVariantKeys`, `UnknownResultType`, `InputForEver`, `HugeRequestState`,
//!   `ProgressFlood`, `ProgressForEver`, `ServerRequests`, `ListChanged`, `NoiseBeforeAnswer`, `AnswersError`,
//!   `Says`, `HalfUtf8`.
//! * Lists: `EndlessPages`, `RepeatedCursor`, `HangingPage`, `ManyTools`, `DuplicateTools`, `LongToolName`,
//!   `OddToolName`, `BrokenSchema`, `BrokenMcpHeader`, `NoInputSchema`, `SchemaBomb`, `ToolsChange`.
//! * Network: `Status`, `HtmlPage`, `WrongContentType`, `Redirect`, `BodyDrip`, `ResetInBody`, `ResetInStream`,
//!   `StreamEndsEarly`, `OnlyKeepAlive`, `EndlessBody`, `SessionGone`, `SessionId`, `NoticeStreamEnds`; and for the
//!   transport of 2024-11-05 `NoEndpoint`, `Endpoint`.
//!
//! A fault that kills the server ends the process; in memory it ends the connection, on the network the whole server until
//! `restart()`. A fake process exits with its parent, unless its script has `OutlivesParent`, and after five minutes in any
//! case; the children it spawns sleep for five minutes at most.
//!
//! # Sign-in
//!
//! [`oauth`] has a local authorization server with faults of its own, and puts a fake server behind it.
//!
//! # The ledger
//!
//! With `.ledger(path)` a server appends `executed NONCE` to a file for each call with an argument `nonce`, before it
//! responds or fails. [`History`] records the outcomes that the client saw and compares them with this ledger:
//!
//! ```
//! use pegboard_testkit::{ErrorClass, History};
//!
//! let history = History::new();
//! history.invoke("a");
//! history.error("a", ErrorClass::NotSent);
//! let summary = history.check("/nonexistent/ledger").expect("nothing contradicts");
//! assert_eq!(summary.errors, 1);
//! ```

mod answer;
mod client;
mod conformance;
mod control;
#[cfg(target_os = "linux")]
mod escape;
mod everything;
mod fake;
mod fault;
mod history;
mod log;
mod model;
pub mod oauth;
mod play;
mod process;
mod program;
mod script;
mod server;
mod wire;

pub use conformance::conformance;
pub use control::Control;
#[cfg(target_os = "linux")]
pub use escape::EscapeTargets;
pub use everything::everything;
pub use fake::{FakeServer, MemoryHandle, fake_server_binary};
pub use fault::{Bomb, Child, Fault, Rule, When};
pub use history::{ErrorClass, History, Summary, Violation};
pub use log::{LogFile, Received, read_log};
pub use model::{ModelHandle, ScriptedModel};
/// The words of MCP: versions, methods, error codes, headers, `_meta` keys.
pub use pegboard_protocol as protocol;
pub use process::{is_alive, kill, read_pids};
pub use program::{main, serve_if_asked};
pub use script::{Answer, Ask, Block, Effect, Era, HttpStyle, Later, LogLine, Question, Refusal, Script, Tool};
pub use wire::net::{NetHandle, Wire, refused_address, stalled_listener};
