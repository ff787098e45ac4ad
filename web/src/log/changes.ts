// The changes of a record in the shared state, or anything in another: a diff of two values
// as a list of the places where they differ.

import { isFields } from './json';
import type { Log } from './record';

/** One place where two values differ. */
export interface Change {
  /** The names and places on the way to it. */
  readonly path: readonly (string | number)[];
  readonly kind: 'added' | 'removed' | 'changed';
  readonly before: unknown;
  readonly after: unknown;
}

/** How many places are looked for: more say no more to a person. */
const most = 1000;

/** Returns where two values differ, in the order of the later one. */
export function diff(before: unknown, after: unknown, limit = most): readonly Change[] {
  const found: Change[] = [];
  const walk = (a: unknown, b: unknown, path: readonly (string | number)[]): void => {
    if (found.length >= limit || a === b) return;
    if (Array.isArray(a) && Array.isArray(b)) {
      for (let i = 0; i < Math.max(a.length, b.length); i++) at(a, b, i, i < a.length, i < b.length, path);
    } else if (isFields(a) && isFields(b)) {
      for (const name of new Set([...Object.keys(b), ...Object.keys(a)])) at(a, b, name, Object.hasOwn(a, name), Object.hasOwn(b, name), path);
    } else {
      found.push({ path, kind: 'changed', before: a, after: b });
    }
  };
  const at = (a: object, b: object, name: string | number, had: boolean, has: boolean, path: readonly (string | number)[]): void => {
    if (found.length >= limit) return;
    const [was, is] = [(a as Record<string | number, unknown>)[name], (b as Record<string | number, unknown>)[name]];
    if (had && has) walk(was, is, [...path, name]);
    else found.push({ path: [...path, name], kind: had ? 'removed' : 'added', before: had ? was : undefined, after: has ? is : undefined });
  };
  if (before === undefined || after === undefined) {
    if (before !== after) found.push({ path: [], kind: before === undefined ? 'added' : 'removed', before, after });
  } else {
    walk(before, after, []);
  }
  return found;
}

/** The path as a JSON pointer. */
export const pointer = (path: Change['path']): string => path.map((key) => '/' + String(key).replaceAll('~', '~0').replaceAll('/', '~1')).join('');

const stateEvents = new Set(['STATE_SNAPSHOT', 'STATE_DELTA']);

/** The indexes of the records that are about the shared state, ascending. */
export function stateRecords(log: Log): readonly number[] {
  const found: number[] = [];
  for (let i = 0; i < log.length; i++) if (stateEvents.has(log.at(i)?.event.type ?? '')) found.push(i);
  return found;
}
