// What the official client does with questions, and what HoldfastAgent repairs of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answers, finished, sse, started } from './answers.mjs';
import { HoldfastAgent, silent } from './client.mjs';

const start = started.replace('"runId"', '"protocolVersion":"1.0","runId"');
const asked = `${start}${finished.replace('"runId":"r1"', '"runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"q","reason":"input_required"}]}')}`;
const failed = `${start}id: 3-a\ndata: {"type":"RUN_ERROR","message":"It failed."}\n\n`;
const done = `${start}${finished.replace('"runId":"r1"', '"runId":"r1","outcome":{"type":"success"}')}`;

test('a run that has taken answers and fails leaves no questions', async () => {
  const { fetch, requests } = answers(sse(asked), sse(failed), sse(done));
  const agent = new HoldfastAgent({ url: 'http://h/runs', threadId: 't/1', fetch });
  await agent.runAgent({ runId: 'r1' });
  assert.deepEqual(agent.pendingInterrupts.map(({ id }) => id), ['q']);
  let failure;
  const onRunErrorEvent = ({ event }) => (failure = event.message);
  await agent.runAgent({ runId: 'r1', resume: [{ interruptId: 'q', status: 'resolved', payload: {} }] }, { onRunErrorEvent });
  assert.deepEqual(agent.pendingInterrupts, []);
  assert.equal(failure, 'It failed.');
  await agent.runAgent({ runId: 'r1' });
  assert.equal(requests.length, 3);
  await silent();
});
