import assert from 'node:assert/strict';
import { test } from 'node:test';
import { standing, threadIn, titleOf } from '../src/threads.js';

test('the address names a thread, or none', () => {
  for (const [hash, want] of [['#/t/a%2Fb', 'a/b'], ['#/t/%E0%A4%A', ''], ['#/t/%', ''], ['#/t/', ''], ['', ''], ['#/x', '']]) {
    assert.equal(threadIn(hash), want, hash);
  }
});

test('a thread that cannot be read, and one that was taken back, have words of their own', () => {
  assert.deepEqual(standing({ status: 'unreadable', code: 'checkpoint_unreadable' }), ['failed', 'cannot be read']);
  assert.deepEqual(standing({ status: 'stopped' }), ['failed', 'unfinished']);
  assert.deepEqual(standing({ status: 'stopped', outcome: 'error' }), ['failed', 'failed']);
});

test('the title is the server’s; until it has one, the first words said', () => {
  const threads = [{ id: 'a', title: 'Tea, of all things' }, { id: 'b' }];
  assert.equal(titleOf(threads, 'a', 'hello'), 'Tea, of all things');
  assert.equal(titleOf(threads, 'b', ' hello '), 'hello');
  assert.equal(titleOf(threads, '123456789'), 'Thread 12345678');
});

test('a thread that waits for somebody outside says for what', () => {
  assert.deepEqual(standing({ status: 'idle', outcome: 'success', outsideCalls: [{ toolName: 'approve' }, { toolName: 'ship' }] }), ['waiting', 'waits for approve, ship']);
});
