// Sending only what is new, and all of it to a server that does not take that.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orWhole, short } from '../dist/stand.js';

const refusal = (status, code) => Response.json({ error: { code, message: 'No.' } }, { status });

for (const [what, answer, again] of [
  ['taken', () => new Response('data: {}\n\n'), false],
  ['not known to an older server', () => refusal(400, 'invalid_input'), true],
  ['of a thread that is lost', () => refusal(409, 'history_diverged'), true],
  ['refused for another reason', () => refusal(409, 'run_in_progress'), false],
  ['refused by a proxy', () => new Response('<html>', { status: 502 }), false],
]) {
  test(`a shortened request that is ${what}`, async () => {
    const sent = [];
    const send = orWhole(async (url, init) => {
      sent.push([url, init.method, init.body]);
      return init.body === 'short' ? answer() : new Response('whole');
    });
    const response = await send('http://h/runs', short({ method: 'POST', body: 'short' }, { method: 'POST', body: 'all' }));
    assert.deepEqual(sent, [['http://h/runs', 'POST', 'short'], ...(again ? [['http://h/runs', 'POST', 'all']] : [])]);
    assert.equal(await response.text(), again ? 'whole' : await answer().text());
    await send('http://h/runs', { method: 'POST', body: 'never shortened' });
    assert.equal(sent.length, again ? 3 : 2);
  });
}
