// A JSON value as the rows of a tree: what is open is listed, what is closed is one row.

export type Path = string;

export interface JsonRow {
  /** JSON Pointer of the value; unique. */
  path: Path;
  depth: number;
  /** The member's name, or the index; undefined for the whole. */
  name?: string;
  value: unknown;
  /** Whether it has members, and whether they are listed. */
  kind: 'leaf' | 'open' | 'closed' | 'more';
  /** Of more: how many are not listed. */
  rest?: number;
  /** Where it stands among its siblings, from 1, and how many there are. */
  position: number;
  siblings: number;
}

/** So many members are listed at first; more come by asking. */
export const pageOfMembers = 100;
/** So many characters of a text are shown at first. */
export const longText = 400;
/** Deeper levels are shown as text: nobody reads it as a tree. */
const deepest = 60;

export const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;
export const sizeOf = (value: object): number => (Array.isArray(value) ? value.length : Object.keys(value).length);

const escape = (name: string) => name.replace(/~/g, '~0').replace(/\//g, '~1');
export const join = (path: Path, name: string): Path => `${path}/${escape(name)}`;

export interface Opened {
  isOpen: (path: Path, depth: number) => boolean;
  /** How many members of a value are listed. */
  listed: (path: Path) => number;
}

/** The rows of a value. */
export function rowsOf(value: unknown, opened: Opened): JsonRow[] {
  const rows: JsonRow[] = [];
  const add = (v: unknown, path: Path, depth: number, name: string | undefined, position: number, siblings: number) => {
    if (!isContainer(v) || sizeOf(v) === 0 || depth >= deepest) {
      rows.push({ path, depth, name, value: v, kind: 'leaf', position, siblings });
      return;
    }
    const open = opened.isOpen(path, depth);
    rows.push({ path, depth, name, value: v, kind: open ? 'open' : 'closed', position, siblings });
    if (!open) return;
    const names = Object.keys(v);
    const listed = Math.min(names.length, opened.listed(path));
    const all = listed < names.length ? listed + 1 : listed;
    for (let i = 0; i < listed; i++) add((v as Record<string, unknown>)[names[i]], join(path, names[i]), depth + 1, names[i], i + 1, all);
    if (listed < names.length) rows.push({ path: `${path}/\u0000more`, depth: depth + 1, value: path, kind: 'more', rest: names.length - listed, position: all, siblings: all });
  };
  add(value, '', 0, undefined, 1, 1);
  return rows;
}

/** A value in a few words, for a closed row: {id, title, …}, [12 items]. */
export function preview(value: object): string {
  if (Array.isArray(value)) return `[${value.length === 1 ? '1 item' : `${value.length} items`}]`;
  const names = Object.keys(value);
  const shown = names.slice(0, 4).map((n) => (n.length > 24 ? `${n.slice(0, 23)}…` : n)).join(', ');
  return `{${shown}${names.length > 4 ? ', …' : ''}}`;
}

/** A value as text, indented; what is too deep or refers to itself is said so. */
export function pretty(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    return 'This value cannot be written as JSON.';
  }
}
