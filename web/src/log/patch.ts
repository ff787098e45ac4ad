// JSON Patch (RFC 6902) on plain values. It never changes its arguments, and what a patch
// does not touch keeps its identity.

import { isFields, list, fields, textOr } from './json';

type Container = unknown[] | Record<string, unknown>;

function keys(pointer: unknown): string[] {
  if (pointer === '') return [];
  if (typeof pointer !== 'string' || pointer[0] !== '/') throw new Error(`"${String(pointer)}" is not a JSON pointer`);
  return pointer.slice(1).split('/').map((key) => key.replace(/~1/g, '/').replace(/~0/g, '~'));
}

function index(container: readonly unknown[], key: string, adding: boolean): number {
  if (key === '-' && adding) return container.length;
  const at = Number(key);
  if (!/^(0|[1-9]\d*)$/.test(key) || at > container.length - (adding ? 0 : 1)) throw new Error(`no element ${key}`);
  return at;
}

/** Returns what a path leads to; it throws if there is nothing. */
export function read(doc: unknown, path: readonly string[]): unknown {
  for (const key of path) {
    if (Array.isArray(doc)) doc = doc[index(doc, key, false)];
    else if (isFields(doc) && Object.hasOwn(doc, key)) doc = doc[key];
    else throw new Error(`no member ${key}`);
  }
  return doc;
}

// A key such as __proto__ is a member like any other.
function define(container: object, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns doc with `change` applied to a copy of the container that the path ends in. */
function edit(doc: unknown, path: readonly string[], change: (container: Container, key: string) => void): unknown {
  const copies: { copy: Container; key: string }[] = [];
  let at = doc;
  for (const key of path) {
    if (typeof at !== 'object' || at === null) throw new Error(`nothing holds ${key}`);
    copies.push({ copy: Array.isArray(at) ? [...at] : { ...(at as Record<string, unknown>) }, key });
    if (copies.length < path.length) at = read(at, [key]);
  }
  const last = copies.at(-1);
  if (last === undefined) throw new Error('a path without keys');
  change(last.copy, last.key);
  for (let i = copies.length - 2; i >= 0; i--) {
    const outer = copies[i] as { copy: Container; key: string };
    const inner = copies[i + 1] as { copy: Container; key: string };
    define(outer.copy, outer.key, inner.copy);
  }
  return (copies[0] as { copy: Container }).copy;
}

function add(doc: unknown, path: readonly string[], value: unknown): unknown {
  if (path.length === 0) return value;
  return edit(doc, path, (container, key) => {
    if (Array.isArray(container)) container.splice(index(container, key, true), 0, value);
    else define(container, key, value);
  });
}

function remove(doc: unknown, path: readonly string[]): unknown {
  if (path.length === 0) return null;
  return edit(doc, path, (container, key) => {
    if (Array.isArray(container)) container.splice(index(container, key, false), 1);
    else if (Object.hasOwn(container, key)) delete container[key];
    else throw new Error(`no member ${key}`);
  });
}

function replace(doc: unknown, path: readonly string[], value: unknown): unknown {
  if (path.length === 0) return value;
  return edit(doc, path, (container, key) => define(container, Array.isArray(container) ? String(index(container, key, false)) : key, value));
}

/** Whether two values are the same JSON. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((value, i) => equal(value, b[i]));
  if (!isFields(a) || !isFields(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]));
}

function move(doc: unknown, from: readonly string[], path: readonly string[]): unknown {
  if (path.length > from.length && from.every((key, i) => path[i] === key)) throw new Error('a value cannot be moved into itself');
  const value = read(doc, from);
  return add(remove(doc, from), path, value);
}

function one(doc: unknown, operation: unknown): unknown {
  const { op, path: pointer, from, value } = fields(operation);
  const path = keys(pointer);
  switch (op) {
    case 'add':
      return add(doc, path, value);
    case 'remove':
      read(doc, path);
      return remove(doc, path);
    case 'replace':
      read(doc, path);
      return replace(doc, path, value);
    case 'copy':
      return add(doc, path, read(doc, keys(from)));
    case 'move':
      return move(doc, keys(from), path);
    case 'test':
      if (!equal(read(doc, path), value)) throw new Error(`${String(pointer)} is different`);
      return doc;
    default:
      throw new Error(`unknown operation ${textOr(op) ?? typeof op}`);
  }
}

/** Applies a patch, all of it or nothing: it throws if an operation does not fit. */
export function apply(doc: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new Error('a patch is a list');
  return list(patch).reduce(one, doc);
}
