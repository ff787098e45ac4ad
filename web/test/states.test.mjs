import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entries, mayChangeStates, sparingly } from '../src/states.js';

const held = (more) => ({ schemaSignature: 'acme.audit,holdfast.budget', schemaVersion: 1, stateVersions: { 'holdfast.budget': 2, 'acme.audit': 1 }, states: { 'holdfast.budget': { used: 3 }, 'acme.audit': {} }, ...more });
const short = (of) => entries(of).map((e) => [e.short, e.version, e.mark, e.text]);

test('every state is an entry, by name, with its version and its JSON', () => {
  assert.deepEqual(short(held()), [['audit', 'v1', '', '{}'], ['budget', 'v2', '', '{\n  "used": 3\n}']]);
  assert.deepEqual(entries(held()).map((e) => e.name), ['acme.audit', 'holdfast.budget']);
});

test('without middleware there is nothing to show', () => {
  for (const none of [undefined, null, held({ states: {} })]) assert.deepEqual(entries(none), []);
});

test('a state that the agent does not have is marked', () => {
  const of = held({ states: { 'acme.gone': 1, 'acme.audit': {} }, stateVersions: null });
  assert.deepEqual(short(of), [['audit', '', '', '{}'], ['gone', '', 'not known here', '1']]);
  assert.deepEqual(short({ ...of, schemaSignature: '' }).map((e) => e[2]), ['not known here', 'not known here']);
  assert.deepEqual(short({ ...of, schemaSignature: null }).map((e) => e[2]), ['', ''], 'older than schemas: nothing is said');
});

test('a value that was set aside is shown next to the state that was reset', () => {
  const of = held({ newerStates: { 'acme.audit': { version: 3, data: { by: 'bo' } } } });
  assert.deepEqual(short(of).at(-1), ['audit', 'v3', 'set aside', '{\n  "by": "bo"\n}']);
  assert.equal(new Set(entries(of).map((e) => e.key)).size, 3, 'keys are unique');
});

test('a hidden state is shown as hidden, not as JSON', () => {
  const of = held({ states: { 'acme.audit': '[redacted]' }, newerStates: { 'acme.audit': { version: 2, data: '[redacted]' } } });
  assert.deepEqual(short(of).map((e) => e[3]), ['[redacted]', '[redacted]']);
});

test('states are read where a run or an iteration ends, not for deltas', () => {
  const asked = ['RUN_STARTED', 'TEXT_MESSAGE_CONTENT', 'TOOL_CALL_ARGS', 'TOOL_CALL_RESULT', 'STATE_DELTA', 'STEP_FINISHED', 'RUN_FINISHED', 'RUN_ERROR'].filter((type) => mayChangeStates({ type }));
  assert.deepEqual(asked, ['RUN_STARTED', 'TOOL_CALL_RESULT', 'STEP_FINISHED', 'RUN_FINISHED', 'RUN_ERROR']);
});

test('many requests are one read, at most one per second, and none is forgotten', async () => {
  let now = 0;
  let planned = [];
  const reads = [];
  let finish;
  const ask = sparingly(() => { reads.push(now); return new Promise((done) => { finish = done; }); }, { now: () => now, later: (f, ms) => planned.push([now + ms, f]) });
  /** Goes to the next time that something was planned for. */
  const go = () => { const [[at, f]] = planned.splice(0); now = at; return f(); };
  ask();
  ask();
  assert.equal(planned.length, 1);
  let work = go();
  ask(); // while the first read is running
  ask();
  assert.deepEqual([reads.length, planned.length], [1, 0]);
  now += 300;
  finish();
  await work;
  assert.equal(planned.length, 1);
  work = go();
  finish();
  await work;
  assert.deepEqual(planned, []);
  assert.equal(reads[1] - reads[0], 1000);
  now += 5000;
  ask();
  go();
  assert.equal(reads[2], reads[1] + 5100, 'after a pause it is read soon');
});
