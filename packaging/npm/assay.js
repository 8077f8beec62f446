#!/usr/bin/env node
"use strict";
// Runs the program of this platform in place of this one.

const { spawn } = require("node:child_process");
const { readdirSync } = require("node:fs");
const { join } = require("node:path");

const platform = `${process.platform}-${process.arch}`;
const programs = readdirSync(join(__dirname, "programs"));
// The report names a version of glibc where Node.js uses it.
if (!programs.includes(platform) || (process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime)) {
  console.error(`assay: there is no program for ${platform}; there are ${programs.join(", ")} (Linux with glibc)`);
  process.exit(1);
}
const path = join(__dirname, "programs", platform, process.platform === "win32" ? "assay.exe" : "assay");
const args = process.argv.slice(2);
// Node.js 22.15 and newer become the program, so that signals and exit status are its own.
if (typeof process.execve === "function") {
  process.execve(path, [path, ...args], process.env);
}
const child = spawn(path, args, { stdio: "inherit" });
for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"]) {
  // On a terminal Ctrl-C reaches the program by itself.
  const isOfTheTerminal = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
  process.on(signal, () => isOfTheTerminal || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`assay: ${path}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
