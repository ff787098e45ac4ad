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

const pages = { 'README.md': '../README.md', 'docs/frontends.md': '../../../docs/frontends.md' };
for (const [page, path] of Object.entries(pages)) {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8');
  const snippets = [...text.matchAll(/```js\n([^`]*holdfast-agent[^`]*)```/g)].map((found) => found[1]);
  assert.ok(snippets.length > 0, page);
  for (const [i, snippet] of snippets.entries()) {
    test(`snippet ${i + 1} of ${page}`, needsServer, () => {
      const code = snippet.replaceAll('http://localhost:8080', server.base);
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8', cwd: fileURLToPath(new URL('..', import.meta.url)) });
      assert.equal(status, 0, stderr);
      assert.equal(stderr, '');
      // What a line prints is said in a comment behind it.
      const promised = [...snippet.matchAll(/\/\/ → (.*)/g)].map((found) => found[1]);
      assert.ok(promised.length > 0);
      const printed = stdout.trim().split('\n');
      promised.forEach((words, n) => assert.ok(printed[n]?.includes(words), `${printed[n]} has no "${words}"`));
    });
  }
}
