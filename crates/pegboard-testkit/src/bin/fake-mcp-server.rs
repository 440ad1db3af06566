//! A fake MCP server as a process; the code is in the library.

fn main() -> std::process::ExitCode {
    pegboard_testkit::main()
}
