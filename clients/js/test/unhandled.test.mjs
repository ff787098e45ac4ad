// The official client calls cancel() on a stream that has failed, and throws the failure again
// from the handler of the rejection that this is (run/http-request.ts, both versions). Nobody
// can catch that, so a cut connection ends the Node process. Our streams never fail.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

for (const version of ['1.0.0', '0.0.59']) {
  const run = (agent) => spawnSync(process.execPath, [fileURLToPath(new URL('cutonce.mjs', import.meta.url)), agent], {
    encoding: 'utf8', env: { ...process.env, AGUI_CLIENT: version, NODE_OPTIONS: '' },
  });
  test(`a cut ends a process with the official client alone (${version})`, () => {
    const { status, stdout, stderr } = run('HttpAgent');
    assert.equal(status, 1);
    assert.equal(stdout, 'failed\n');
    assert.match(stderr, /terminated/);
  });
  test(`a cut does not end a process with HoldfastAgent (${version})`, () => {
    const { status, stdout, stderr } = run('HoldfastAgent');
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: 'finished\nsurvived\n', stderr: '' });
  });
}
