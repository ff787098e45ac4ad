// A thread that waits for somebody outside has ended its run, but not its work: clients can tell.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpAgent } from '@ag-ui/client';
import { HoldfastAgent } from '../dist/index.js';
import { answers, sse } from './answers.mjs';

const calls = [{ toolCallId: 'c1', toolName: 'approve', expiresAt: '2026-01-01T00:00:00Z', abandonable: true }];
const stream = (...events) => events.map((event, i) => `id: ${i + 1}-a\ndata: ${JSON.stringify(event)}\n\n`).join('');
const started = { type: 'RUN_STARTED', threadId: 't/1', runId: 'r1' };
const waits = { type: 'CUSTOM', name: 'holdfast.outside_calls', value: { calls } };
const finished = { type: 'RUN_FINISHED', threadId: 't/1', runId: 'r1' };

test('a HoldfastAgent knows the calls that its thread waits for', async () => {
  const { fetch } = answers(sse(stream(started, waits, finished)), sse(stream(started, finished)));
  const agent = new HoldfastAgent({ url: 'http://h/runs', threadId: 't/1', fetch });
  assert.deepEqual(agent.outsideCalls(), []);
  await agent.runAgent({ runId: 'r1' });
  assert.deepEqual(agent.outsideCalls(), calls);
  assert.deepEqual(agent.clone().outsideCalls(), calls);
  await agent.connectAgent();
  assert.deepEqual(agent.outsideCalls(), [], 'the result has come');
});

test('a stock client is told by an event', async () => {
  const { fetch } = answers(sse(stream(started, waits, finished)));
  const agent = new HttpAgent({ url: 'http://h/runs', threadId: 't/1', fetch });
  const told = [];
  await agent.runAgent({ runId: 'r1' }, { onCustomEvent: ({ event }) => told.push([event.name, event.value.calls.length]), onRunFinishedEvent: () => told.push('finished') });
  assert.deepEqual(told, [['holdfast.outside_calls', 1], 'finished']);
});
