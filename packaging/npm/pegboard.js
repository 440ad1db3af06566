#!/usr/bin/env node
// Starts the program, which is in the package of this system: `@pegboard/linux-x64` and the like, an optional dependency of this one.
"use strict";

const { spawn } = require("node:child_process");

const owner = `@pegboard/${process.platform}-${process.arch}`;

function findProgram() {
  if (process.env.PEGBOARD_BINARY) return process.env.PEGBOARD_BINARY;
  const file = process.platform === "win32" ? "pegboard.exe" : "pegboard";
  try {
    return require.resolve(`${owner}/bin/${file}`);
  } catch {
    console.error(`error: the package ${owner} is not installed`);
    console.error("hint: install with optional dependencies (no --omit=optional, no lock file of another system), or set PEGBOARD_BINARY to the path of a pegboard program");
    process.exit(1);
  }
}

const program = findProgram();
const args = process.argv.slice(2);

// Newer Node can become the program: a host that kills its child then kills the program itself.
if (typeof process.execve === "function" && process.platform !== "win32") {
  // The function is marked as experimental, and the warning would be the first line on stderr.
  process.removeAllListeners("warning");
  process.on("warning", () => {});
  try {
    process.execve(program, [program, ...args], process.env);
  } catch {
    // Started as a child below, which reports why it cannot be started.
  }
}

// Before the child is started: a signal must not end this process alone.
// A terminal sends these to both processes, and the program decides what they mean.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
const child = spawn(program, args, { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
