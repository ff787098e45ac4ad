// The tables of docs/frontends.md are those that make survives and make kills have measured, with the versions that
// are installed now. What a browser takes minutes for is not measured here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { installed, rowsOf } from '../../../examples/browser/table.mjs';

const noted = (file) => JSON.parse(readFileSync(new URL(`../../../examples/browser/${file}`, import.meta.url), 'utf8'));

/** The rows of the first table that no browser measures. */
const others = ['CopilotKit with a Node runtime', 'fetch'];

for (const [name, heading, file, cellsOf] of [
  ['what each client survives', /^\| client \| what to paste /m, 'survives.json', (row) => row.slice(1, 4)],
  ['kill -9 at 50 places', /^\| client \| killed, /m, 'kills.json', (row) => row],
]) {
  test(name, () => {
    const measured = noted(file);
    const rows = [...rowsOf('frontends.md', heading)].filter(([client]) => !others.includes(client));
    assert.deepEqual(rows.map(([client, row]) => [client, cellsOf(row)]), Object.entries(measured).map(([client, { cells }]) => [client, cells]));
    for (const [client, { from, packages }] of Object.entries(measured)) assert.deepEqual(packages, installed(from, Object.keys(packages)), `${client} was measured in another version`);
  });
}
