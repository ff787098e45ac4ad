// Makes dist from src: removes from what browsers load what only readers of the sources
// need (comments, indentation). It needs only Node.
//
//   node web/build.mjs           write dist
//   node web/build.mjs --check   only check whether dist matches src
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const at = (name) => fileURLToPath(new URL(name, import.meta.url));

/** In src, comments are on lines of their own, or are types before a name. */
function shrink(name, text) {
  if (!/\.(js|css)$/.test(name)) return text;
  text = text.replace(/^ *\/\*[\s\S]*?\*\/ *\n/gm, '').replace(/^ *\/\/.*\n/gm, '').replace(/^[ \t]+|\n(?=\n)/gm, '');
  if (name.endsWith('.js')) return text.replace(/\/\*\* ?@[^\n]*?\*\/ ?/g, '');
  return text.replace(/ ?([{};,>]) ?/g, '$1').replace(/: /g, ':').replace(/;\n?}/g, '}');
}

const built = new Map(readdirSync(at('src')).map((name) => [name, shrink(name, readFileSync(join(at('src'), name), 'utf8'))]));

if (process.argv.includes('--check')) {
  const have = readdirSync(at('dist')).sort().join();
  const stale = [...built].filter(([name, text]) => !have.split(',').includes(name) || readFileSync(join(at('dist'), name), 'utf8') !== text);
  if (stale.length || have !== [...built.keys()].sort().join()) {
    console.error(`web/dist does not match web/src (${stale.map(([name]) => name).join(', ') || 'other files'}): run "make web"`);
    process.exit(1);
  }
} else {
  for (const name of built.keys()) {
    if (name.endsWith('.js')) execFileSync(process.execPath, ['--check', join(at('src'), name)], { stdio: 'inherit' });
  }
  rmSync(at('dist'), { recursive: true, force: true });
  mkdirSync(at('dist'));
  for (const [name, text] of built) writeFileSync(join(at('dist'), name), text);
}
