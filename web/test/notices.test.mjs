import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notice } from '../src/notices.js';

test('what middleware says is one readable line', () => {
  const said = [
    ['circuit_open', { tool: 'lookup', count: 3, limit: 3 }, 'lookup was called 3 times in a row with the same arguments. The last call was not run.'],
    ['too_many_errors', { failures: 1, limit: 1 }, 'Tools failed in 1 iteration in a row.'],
    ['budget_warning', { scope: 'thread', unit: 'cost', used: 2.1, limit: 2.5, currency: 'USD' }, 'Budget nearly used: the thread has used 2.1 of 2.5 USD.'],
    ['budget_exceeded', { scope: 'run', unit: 'tokens', used: 9000, limit: 10000, needed: 4000 }, 'Budget used: the run has used 9,000 of 10,000 tokens, and the next call needs 4,000.'],
    ['budget_unreported', { tokens: 120, cost: 0, currency: 'USD' }, 'The model did not report its usage; 120 tokens are counted.'],
    ['rate_limited', { name: 'searches', tool: 'search', limit: 5, window: '1m0s' }, 'Rate limit reached: “searches”, 5 calls of search in 1m.'],
    ['rate_limit_unchecked', { name: 'default', limit: 60, window: '1h0m0s' }, 'A rate limit could not be checked: 60 model calls in 1h.'],
    ['continuation_granted', { iterations: 20, remembered: true }, 'The run may continue for 20 iterations, as answered before.'],
    ['continuation_refused', { used: 20, why: 'the answer was no' }, 'The run may not continue after 20 iterations: the answer was no.'],
    ['permission_denied', { tool: 'pay', rule: 'pay', by: 'rule' }, 'pay was not allowed, by a rule.'],
    ['permission_remembered', { tool: 'pay', scope: 'thread', allow: true }, 'Remembered for this thread: pay is allowed.'],
    ['permission_not_remembered', { tool: 'pay', scope: 'user', allow: true }, 'The answer about pay could not be kept; it counts for this call only.'],
    ['retried', { tool: 'fetch', attempts: 3, helped: false }, 'fetch was tried 3 times; no attempt succeeded.'],
    ['history_summarised', { messages: 12, bytes: 800 }, 'For the model, 12 older messages became a summary.'],
    ['summary_failed', { messages: 1, reason: 'timeout' }, '1 older message could not be summarized for the model: timeout.'],
    ['redacted', { where: ['model', 'tools'], names: ['email'], count: 2 }, '2 texts hidden (email) from model, tools.'],
    ['thread_large', { bytes: 5 << 20, warnBytes: 1 }, 'This thread is large: 5.0 MiB.'],
  ];
  for (const [name, value, text] of said) assert.equal(notice('holdfast.' + name, value), text);
});

test('a change of the schema says which states', () => {
  assert.equal(notice('holdfast.schema_changed', { isUpgrade: false, removed: ['acme.audit'], added: ['acme.plan', 'holdfast.budget'], changed: [{ name: 'acme.mail', from: 1, to: 2 }] }),
    'This thread was written by another version of the agent’s state; now without audit, with plan, budget, mail 1 → 2.');
  assert.equal(notice('holdfast.schema_changed', { isUpgrade: true, removed: null, added: null, changed: null }), 'This thread was written by another version of the agent’s state.');
});

test('a notice of a later version shows its name and its simple values', () => {
  assert.equal(notice('holdfast.quota_moved', { fromPlan: 'a', seats: 3, open: false, tags: ['x', 'y'], deep: { a: 1 }, none: null }), 'Quota moved: from plan a, seats 3, open false, tags x, y.');
  assert.equal(notice('holdfast.paused', null), 'Paused.');
  assert.ok(notice('holdfast.long', { text: 'x'.repeat(500) }).length < 100);
});

test('events of others are not notices', () => {
  for (const name of ['acme.mail_sent', 'holdfast', 'holdfast.', 'xholdfast.retry', '', undefined]) assert.equal(notice(name, {}), '');
  assert.equal(notice('holdfast.constructor', {}), 'Constructor.');
});
