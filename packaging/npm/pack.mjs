// Packs the npm package: it has the programs of all platforms and no dependency, so npm asks no registry for one.
//
//   node packaging/npm/pack.mjs VERSION OUT PLATFORM=FOLDER…
//
// PLATFORM is npm's name, such as linux-x64; FOLDER holds its program. ASSAY_NPM_SCOPE puts the name into your own scope,
// for your own registry.

import { execFileSync } from "node:child_process";
import { cpSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [version, out, ...platforms] = process.argv.slice(2);
const scope = process.env.ASSAY_NPM_SCOPE;
const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "assay-npm-"));
try {
  const manifest = {
    name: scope ? `${scope}/assay-verdicts` : "assay-verdicts",
    version,
    license: "MIT OR Apache-2.0",
    description: "Sends CI test results to Assay, and says which tests are flaky",
    bin: { assay: "assay.js" },
    engines: { node: ">=18" },
    preferUnplugged: true,
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  for (const file of ["assay.js", "README.md"]) cpSync(join(here, file), join(folder, file));
  for (const file of ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(here, "../..", file), join(folder, file));
  for (const pair of platforms) {
    const [platform, programFolder] = pair.split("=");
    const program = platform.startsWith("win32") ? "assay.exe" : "assay";
    const path = join(folder, "programs", platform, program);
    cpSync(join(programFolder, program), path);
    chmodSync(path, 0o755);
  }
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], { cwd: folder, stdio: "inherit" });
} finally {
  rmSync(folder, { recursive: true });
}
