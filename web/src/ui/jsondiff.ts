// The differences between two JSON values, as rows: only members that changed, with what
// surrounds them counted.
import { create } from 'jsondiffpatch';

export interface DiffRow {
  /** JSON Pointer of the value. */
  path: string;
  depth: number;
  name?: string;
  kind: 'same' | 'added' | 'removed' | 'changed' | 'moved' | 'inside';
  before?: unknown;
  after?: unknown;
  /** Of same: how many members are left out. */
  count?: number;
}

const differ = create({
  // Things with a name of their own are the same thing, wherever they stand in a list.
  objectHash: (item, index) => {
    const { id, toolCallId, name } = item as { id?: unknown; toolCallId?: unknown; name?: unknown };
    return String(id ?? toolCallId ?? name ?? `#${index}`);
  },
  arrays: { detectMove: true, includeValueOnMove: true },
});

type Delta = { [key: string]: unknown } & { _t?: 'a' };

const pointer = (path: string, name: string) => `${path}/${name.replace(/~/g, '~0').replace(/\//g, '~1')}`;

function leafRow(delta: unknown[], at: Omit<DiffRow, 'kind'>): DiffRow {
  if (delta.length === 1) return { ...at, kind: 'added', after: delta[0] };
  if (delta.length === 2) return { ...at, kind: 'changed', before: delta[0], after: delta[1] };
  return delta[2] === 3 ? { ...at, kind: 'moved', after: delta[0] } : { ...at, kind: 'removed', before: delta[0] };
}

/** The names in a delta of an array: first what was there and went ("_3"), then what is there. */
function arrayOrder(a: string, b: string): number {
  const place = (k: string) => Number(k.replace('_', '')) - (k.startsWith('_') ? 0.5 : 0);
  return place(a) - place(b);
}

function walk(delta: Delta, after: unknown, path: string, depth: number, rows: DiffRow[]): void {
  const array = delta._t === 'a';
  const names = Object.keys(delta).filter((k) => k !== '_t');
  if (array) names.sort(arrayOrder);
  const members = typeof after === 'object' && after !== null ? Object.keys(after).length : 0;
  const touched = names.filter((k) => !(array && k.startsWith('_'))).length - names.filter((k) => Array.isArray(delta[k]) && (delta[k] as unknown[]).length === 3 && !array).length;
  for (const key of names) {
    const name = array ? key.replace('_', '') : key;
    const at = { path: pointer(path, name), depth, name };
    const part = delta[key];
    if (Array.isArray(part)) {
      rows.push(leafRow(part, at));
    } else {
      rows.push({ ...at, kind: 'inside' });
      walk(part as Delta, (after as Record<string, unknown> | undefined)?.[name], at.path, depth + 1, rows);
    }
  }
  if (members > touched) rows.push({ path: `${path}/\u0000same`, depth, kind: 'same', count: members - touched });
}

/** The rows; none if the values are the same. */
export function diffRows(before: unknown, after: unknown): DiffRow[] {
  const delta = differ.diff(before, after) as Delta | unknown[] | undefined;
  if (delta === undefined) return [];
  if (Array.isArray(delta)) return [leafRow(delta, { path: '', depth: 0 })];
  const rows: DiffRow[] = [];
  walk(delta, after, '', 0, rows);
  return rows;
}
