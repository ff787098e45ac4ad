import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apply } from '../src/patch.js';

const good = [
  ['add a member', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
  ['add replaces a member', { a: 1 }, [{ op: 'add', path: '/a', value: null }], { a: null }],
  ['add into a list', [1, 3], [{ op: 'add', path: '/1', value: 2 }], [1, 2, 3]],
  ['append', { l: [1] }, [{ op: 'add', path: '/l/-', value: 2 }], { l: [1, 2] }],
  ['add at the end by number', [1], [{ op: 'add', path: '/1', value: 2 }], [1, 2]],
  ['the whole document', { a: 1 }, [{ op: 'replace', path: '', value: [1] }], [1]],
  ['remove', { a: 1, b: [1, 2] }, [{ op: 'remove', path: '/a' }, { op: 'remove', path: '/b/0' }], { b: [2] }],
  ['replace keeps the place', { a: 1, b: 2 }, [{ op: 'replace', path: '/a', value: 3 }], { a: 3, b: 2 }],
  ['replace in a list', [1, 2, 3], [{ op: 'replace', path: '/1', value: 9 }], [1, 9, 3]],
  ['move', { a: { x: 1 }, b: {} }, [{ op: 'move', from: '/a/x', path: '/b/y' }], { a: {}, b: { y: 1 } }],
  ['move in a list', [1, 2, 3], [{ op: 'move', from: '/0', path: '/2' }], [2, 3, 1]],
  ['copy', { a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }], { a: [1], b: [1] }],
  ['test', { a: { x: [1, null] } }, [{ op: 'test', path: '/a', value: { x: [1, null] } }], { a: { x: [1, null] } }],
  ['escapes', { 'a/b': 1, 'm~n': 2 }, [{ op: 'replace', path: '/a~1b', value: 3 }, { op: 'replace', path: '/m~0n', value: 4 }], { 'a/b': 3, 'm~n': 4 }],
  ['an empty name', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
  ['below a list', { l: [{ d: false }] }, [{ op: 'replace', path: '/l/0/d', value: true }], { l: [{ d: true }] }],
];

for (const [name, doc, patch, want] of good) {
  test(name, () => {
    const before = structuredClone(doc);
    assert.deepEqual(apply(doc, patch), want);
    assert.deepEqual(doc, before, 'the arguments are not changed');
  });
}

const bad = [
  ['a missing member', { a: 1 }, { op: 'remove', path: '/b' }],
  ['replace of what is not there', {}, { op: 'replace', path: '/a', value: 1 }],
  ['beyond a list', [1], { op: 'add', path: '/2', value: 1 }],
  ['a leading zero', [1, 2], { op: 'replace', path: '/01', value: 1 }],
  ['below a number', { a: 1 }, { op: 'add', path: '/a/b', value: 1 }],
  ['no parent', {}, { op: 'add', path: '/a/b', value: 1 }],
  ['a test that fails', { a: 1 }, { op: 'test', path: '/a', value: 2 }],
  ['into itself', { a: {} }, { op: 'move', from: '/a', path: '/a/b' }],
  ['an inherited member', {}, { op: 'copy', from: '/toString', path: '/x' }],
  ['not a pointer', {}, { op: 'add', path: 'a', value: 1 }],
  ['an unknown operation', {}, { op: 'merge', path: '/a', value: 1 }],
];

for (const [name, doc, op] of bad) test('refused: ' + name, () => assert.throws(() => apply(doc, [op])));

test('a name like __proto__ changes no other object', () => {
  const doc = apply({}, [{ op: 'add', path: '/__proto__', value: { polluted: 1 } }]);
  assert.equal({}.polluted, undefined);
  assert.deepEqual(Object.keys(doc), ['__proto__']);
});
