// Checks that dist is what the sources give: builds into a temporary folder, and compares.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const at = (name) => fileURLToPath(new URL(name, import.meta.url));
const files = (dir) => readdirSync(dir, { recursive: true, withFileTypes: true })
  .filter((e) => e.isFile())
  .map((e) => join(e.parentPath, e.name).slice(dir.length + 1))
  .sort();

const built = mkdtempSync(join(tmpdir(), 'holdfast-web-'));
try {
  execFileSync(process.execPath, [at('node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'warn', '--emptyOutDir'], { cwd: at('.'), env: { ...process.env, HOLDFAST_DIST: built }, stdio: 'inherit' });
  const [want, have] = [files(built), files(at('dist'))];
  const differ = [...new Set([...want, ...have])].filter((name) => !want.includes(name) || !have.includes(name) || !readFileSync(join(built, name)).equals(readFileSync(join(at('dist'), name))));
  if (differ.length > 0) {
    console.error(`web/dist does not match its sources (${differ.join(', ')}): run "make web"`);
    process.exitCode = 1;
  }
} finally {
  rmSync(built, { recursive: true, force: true });
}
