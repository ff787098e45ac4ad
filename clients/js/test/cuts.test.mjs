// A sample of the campaign of cuts, with a fixed seed for the places.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { needsServer } from './client.mjs';

test('80 connections are cut, and every transcript is right', needsServer, () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL('cuts.mjs', import.meta.url)), '80', '7'], { encoding: 'utf8' });
  assert.equal(status, 0, stderr + stdout);
  const rows = stdout.trim().split('\n').slice(2).map((line) => line.split('|').map((cell) => cell.trim()));
  assert.equal(rows.length, 4);
  for (const [, , , , , cuts, wrong, warnings] of rows) {
    assert.ok(Number(cuts) >= 20);
    assert.deepEqual([wrong, warnings], ['0', '0']);
  }
});
