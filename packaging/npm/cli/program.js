"use strict";
// Runs a program of the package for this platform in place of this one.

const { spawn } = require("node:child_process");
const { name, optionalDependencies } = require("./package.json");

module.exports = function run(program) {
  const platform = `${name}-${process.platform}-${process.arch}`;
  let path;
  try {
    path = require.resolve(`${platform}/bin/${program}${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    console.error(
      `assay: there is no program for ${process.platform} ${process.arch}: the package ${platform} is not installed. ` +
        `There are ${Object.keys(optionalDependencies).join(", ")}; npm leaves them out with --omit=optional`,
    );
    process.exit(1);
  }
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
};
