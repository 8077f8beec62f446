// Packs the npm packages: one for each platform with the program, and `cli`, which picks it.
//
//   node packaging/npm/pack.mjs VERSION OUT PLATFORM=FOLDER…
//
// PLATFORM is npm's name, such as linux-x64; FOLDER holds its program. ASSAY_NPM_SCOPE is the scope, by default @assay: take
// one that is yours, in your own registry.

import { execFileSync } from "node:child_process";
import { cpSync, chmodSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [version, out, ...platforms] = process.argv.slice(2);
const scope = process.env.ASSAY_NPM_SCOPE ?? "@assay";
const name = `${scope}/cli`;
const here = dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "assay-npm-"));

function pack(folder, manifest) {
  const common = { version, license: "MIT OR Apache-2.0", description: "Sends CI test results to Assay, and says which tests are flaky" };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, ...common }, null, 2) + "\n");
  for (const file of ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(here, "../..", file), join(folder, file));
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], { cwd: folder, stdio: "inherit" });
}

try {
  const optionalDependencies = {};
  for (const pair of platforms) {
    const [platform, programFolder] = pair.split("=");
    const [os, cpu] = platform.split("-");
    const folder = join(scratch, platform);
    mkdirSync(join(folder, "bin"), { recursive: true });
    const program = os === "win32" ? "assay.exe" : "assay";
    cpSync(join(programFolder, program), join(folder, "bin", program));
    chmodSync(join(folder, "bin", program), 0o755);
    const libc = os === "linux" ? { libc: ["glibc"] } : {};
    pack(folder, { name: `${name}-${platform}`, os: [os], cpu: [cpu], ...libc, preferUnplugged: true });
    optionalDependencies[`${name}-${platform}`] = version;
  }
  const folder = join(scratch, "cli");
  cpSync(join(here, "cli"), folder, { recursive: true });
  pack(folder, { name, bin: { assay: "bin/assay.js" }, engines: { node: ">=18" }, optionalDependencies });
} finally {
  rmSync(scratch, { recursive: true });
}
