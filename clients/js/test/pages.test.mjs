// The snippets on the pages, each run as it stands, against a real server.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, needsServer, Server } from './client.mjs';

let server;
before(async () => {
  if (!needsServer.skip) server = await new Server(await freePort()).start();
});
after(() => server?.stop());

/** Checks that a program has printed, line by line, what the comments behind its lines promise. */
function check(snippet, comment, { status, stdout, stderr }) {
  assert.equal(status, 0, stderr);
  assert.equal(stderr, '');
  const promised = [...snippet.matchAll(comment)].map((found) => found[1]);
  assert.ok(promised.length > 0);
  const printed = stdout.trim().split('\n');
  promised.forEach((words, n) => assert.ok(printed[n]?.includes(words), `${printed[n]} has no "${words}"`));
}

const pages = { 'README.md': '../README.md', 'docs/frontends.md': '../../../docs/frontends.md' };
const cwd = fileURLToPath(new URL('..', import.meta.url));
for (const [page, path] of Object.entries(pages)) {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8');
  const blocks = (language) => [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((found) => found[1]);
  const snippets = blocks('js');
  assert.ok(snippets.length > 0, page);
  for (const [i, snippet] of snippets.entries()) {
    test(`snippet ${i + 1} of ${page}`, needsServer, () => {
      const code = snippet.replaceAll('http://localhost:8080', server.base);
      check(snippet, /\/\/ → (.*)/g, spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8', cwd }));
    });
  }
  for (const line of blocks('sh').join('').match(/^curl .*/gm) ?? []) {
    test(`${page}: ${line.slice(0, 70)}`, needsServer, () => {
      const [command] = line.replaceAll('localhost:8080', server.base.replace('http://', '')).split('   # →');
      const ran = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
      check(line, / {3}# → (.*)/g, { ...ran, stdout: ran.stdout.replaceAll('\n', ' ') });
    });
  }
}
