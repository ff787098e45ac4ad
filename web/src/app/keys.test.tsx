// The token of the operator in the address.
import { afterEach, expect, it } from 'vitest';
import { createKeys, takeToken } from './keys.ts';
import { storageOf } from './storage.ts';

afterEach(() => {
  sessionStorage.clear();
  window.history.replaceState(null, '', '#/');
});

it('is the key of this tab, and does not stay in the address', () => {
  const keys = createKeys(storageOf(() => sessionStorage));
  window.history.replaceState(null, '', '#token=AB-c_1');
  expect(takeToken(window, keys)).toBe(true);
  expect([keys.current(), window.location.hash]).toEqual(['AB-c_1', '#/']);
  for (const hash of ['#/', '#token=', '#token=a/b', '#/threads/t']) {
    window.history.replaceState(null, '', hash);
    expect(takeToken(window, keys)).toBe(false);
    expect([keys.current(), window.location.hash]).toEqual(['AB-c_1', hash]);
  }
});
