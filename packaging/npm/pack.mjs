// Packs the npm packages: one for each platform with the programs, and `cli`, which picks it.
//
//   node packaging/npm/pack.mjs VERSION OUT PLATFORM=FOLDER…
//
// PLATFORM is npm's name, such as linux-x64; FOLDER holds its programs. ASSAY_NPM_SCOPE is the scope, by default @assay: take
// one that is yours, in your own registry.

import { execFileSync } from "node:child_process";
import { cpSync, chmodSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [version, out, ...platforms] = process.argv.slice(2);
const scope = process.env.ASSAY_NPM_SCOPE ?? "@assay";
const name = `${scope}/cli`;
const programs = ["assay", "assay-server"];
const here = dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "assay-npm-"));

function pack(folder, manifest) {
  const common = { version, license: "MIT OR Apache-2.0", description: "Keeps CI test results and says which tests are flaky" };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, ...common }, null, 2) + "\n");
  for (const file of ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(here, "../..", file), join(folder, file));
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], { cwd: folder, stdio: "inherit" });
}

try {
  const optionalDependencies = {};
  for (const pair of platforms) {
    const [platform, programsFolder] = pair.split("=");
    const [os, cpu] = platform.split("-");
    const folder = join(scratch, platform);
    mkdirSync(join(folder, "bin"), { recursive: true });
    for (const program of programs) {
      cpSync(join(programsFolder, program), join(folder, "bin", program));
      chmodSync(join(folder, "bin", program), 0o755);
    }
    pack(folder, { name: `${name}-${platform}`, os: [os], cpu: [cpu], libc: ["glibc"], preferUnplugged: true });
    optionalDependencies[`${name}-${platform}`] = version;
  }
  const folder = join(scratch, "cli");
  cpSync(join(here, "cli"), folder, { recursive: true });
  const bin = Object.fromEntries(programs.map((program) => [program, `bin/${program}.js`]));
  pack(folder, { name, bin, engines: { node: ">=18" }, optionalDependencies });
} finally {
  rmSync(scratch, { recursive: true });
}
