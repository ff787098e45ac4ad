// The tables of docs/frontends.md that are measured, and the versions that they were measured with.
import { readFileSync } from 'node:fs';

const at = (path) => new URL(path, import.meta.url);

/**
 * The rows of a table on a page, whose heading matches: their cells behind the first one, by the client's name and
 * what is added to it.
 */
export function rowsOf(page, heading) {
  const text = readFileSync(at(`../../docs/${page}`), 'utf8');
  const [, , ...lines] = text.slice(heading.exec(text).index).split('\n\n')[0].trim().split('\n');
  const rows = new Map();
  let client;
  for (const line of lines) {
    const [first, ...cells] = line.slice(2, -2).split(' | ');
    const more = /^&nbsp; (.*)/.exec(first)?.[1].replaceAll('`', '');
    client = more ? client : /^\[?`?([^`\]|]*)/.exec(first)[1].trim();
    rows.set(more ? `${client} ${more}` : client, cells);
  }
  return rows;
}

/** The versions of packages that an example, or clients/js, is locked to. */
export function installed(from, packages) {
  const lock = JSON.parse(readFileSync(at(`../${from}/package-lock.json`), 'utf8'));
  return Object.fromEntries(packages.map((of) => [of, lock.packages[`node_modules/${of}`].version]));
}
