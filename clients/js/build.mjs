// Makes dist from src with the pinned compiler, and checks the types against both
// versions of the official client. dist is committed, so that the package can be
// installed from a checkout without a compiler.
//
//   node clients/js/build.mjs           write dist
//   node clients/js/build.mjs --check   only check whether dist matches src
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const at = (name) => fileURLToPath(new URL(name, import.meta.url));
const compile = (...args) => execFileSync(process.execPath, [at('node_modules/typescript/bin/tsc'), ...args], { stdio: 'inherit' });
const files = (dir) => new Map(readdirSync(dir).sort().map((name) => [name, readFileSync(join(dir, name), 'utf8')]));

compile('-p', at('tsconfig.old.json'));
if (process.argv.includes('--check')) {
  const fresh = mkdtempSync(join(tmpdir(), 'holdfast-agent-'));
  try {
    compile('-p', at('.'), '--outDir', fresh);
    const want = files(fresh);
    const have = files(at('dist'));
    const stale = [...new Set([...want.keys(), ...have.keys()])].filter((name) => want.get(name) !== have.get(name));
    if (stale.length > 0) {
      console.error(`clients/js/dist does not match clients/js/src (${stale.join(', ')}): run "make clients-dist"`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
} else {
  rmSync(at('dist'), { recursive: true, force: true });
  compile('-p', at('.'));
}
