// The content of a form while it is filled in, and its value when it is whole. A draft keeps
// what was typed, also where it is no value yet: "-" is on its way to a number.
import { spaced, type SchemaField } from './schema.ts';

/** The draft of a field, by its kind. undefined: nobody has filled it in. */
export type Draft =
  | undefined
  | string
  | boolean
  | number
  | readonly boolean[]
  | { readonly rows: readonly { readonly id: number; readonly draft: Draft }[] }
  | { readonly chosen: number; readonly drafts: readonly Draft[] }
  | { readonly members: Readonly<Record<string, Draft>> };

/** The mistakes, by the path of the field: "/address/zip". */
export type Problems = ReadonlyMap<string, string>;

/** Nothing can be sent for an empty field that need not be sent. */
const nothing = Symbol('nothing');

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

let rows = 0;

/** A row of a list. Its id stays when rows before it go. */
export const row = (draft: Draft): { id: number; draft: Draft } => ({ id: ++rows, draft });

const textOf = (value: unknown): string => (typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 2));

/** The draft of a field that has a value; without one, its own initial value. */
export function draftOf(field: SchemaField, given?: unknown): Draft {
  const value = given === undefined ? field.initial : given;
  switch (field.kind) {
    case 'text': return value === null || value === undefined ? undefined : textOf(value);
    case 'number': return typeof value === 'number' ? String(value) : undefined;
    case 'boolean': return typeof value === 'boolean' ? value : undefined;
    case 'choice': {
      const at = value === undefined ? -1 : field.choices.findIndex((c) => same(c.value, value));
      return at < 0 ? undefined : at;
    }
    case 'several': {
      const all: readonly unknown[] = Array.isArray(value) ? value : [];
      return field.choices.map((c) => all.some((v) => same(v, c.value)));
    }
    case 'list': {
      const all: readonly unknown[] = Array.isArray(value) ? value : [];
      const missing = Math.min(20, Math.max(0, field.fewest - all.length));
      return { rows: [...all, ...new Array<undefined>(missing)].map((each) => row(draftOf(field.item, each))) };
    }
    case 'object': {
      const given: Readonly<Record<string, unknown>> = typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : {};
      return { members: Object.fromEntries(field.members.map((m) => [m.name, draftOf(m.field, Object.hasOwn(given, m.name) ? given[m.name] : undefined)])) };
    }
    case 'variants': {
      const at = value === undefined ? 0 : Math.max(0, field.variants.findIndex((v) => fits(v, value)));
      return { chosen: at, drafts: field.variants.map((v, i) => draftOf(v, i === at ? value : undefined)) };
    }
    case 'constant': return undefined;
    case 'json': return value === undefined ? undefined : JSON.stringify(value, null, 2);
  }
}

/** Whether a value could come from a field, as far as its kind tells. */
function fits(field: SchemaField, value: unknown): boolean {
  switch (field.kind) {
    case 'text': return typeof value === 'string';
    case 'number': return typeof value === 'number';
    case 'boolean': return typeof value === 'boolean';
    case 'choice': return field.choices.some((c) => same(c.value, value));
    case 'constant': return same(field.value, value);
    case 'list':
    case 'several': return Array.isArray(value);
    case 'object': return typeof value === 'object' && value !== null && !Array.isArray(value) && field.members.every((m) => (Object.hasOwn(value, m.name) ? fits(m.field, (value as Record<string, unknown>)[m.name]) : !m.required));
    default: return true;
  }
}

type Told = (message: string) => typeof nothing;

const plural = (n: number, one: string): string => `${n} ${n === 1 ? one : `${one}s`}`;

function readText(field: Extract<SchemaField, { kind: 'text' }>, value: string, tell: Told): unknown {
  const length = [...value].length;
  if (length < field.shortest) return tell(`At least ${plural(field.shortest, 'character')}.`);
  if (length > field.longest) return tell(`At most ${plural(field.longest, 'character')}; these are ${length}.`);
  if (field.pattern !== '') {
    try {
      if (!new RegExp(field.pattern, 'u').test(value)) return tell(`It must match ${field.pattern}`);
    } catch {
      // Not a pattern that this browser knows: the server checks it.
    }
  }
  if (field.format === 'email' && !/^[^\s@]+@[^\s@]+$/.test(value)) return tell('This is no e-mail address.');
  if ((field.format === 'uri' || field.format === 'url') && !URL.canParse(value)) return tell('This is no complete address, like https://example.com.');
  if (field.format === 'date-time') {
    const time = new Date(value);
    return Number.isNaN(time.getTime()) ? tell('This is no date and time.') : time.toISOString();
  }
  return value;
}

function readNumber(field: Extract<SchemaField, { kind: 'number' }>, value: string, tell: Told): unknown {
  const n = Number(value);
  if (!Number.isFinite(n)) return tell('This is no number.');
  if (field.whole && !Number.isInteger(n)) return tell('It must be a whole number.');
  if (n < field.least) return tell(`It must be at least ${field.least}.`);
  if (n > field.most) return tell(`It must be at most ${field.most}.`);
  if (n <= field.above) return tell(`It must be more than ${field.above}.`);
  if (n >= field.below) return tell(`It must be less than ${field.below}.`);
  if (field.step > 0 && Math.abs(n / field.step - Math.round(n / field.step)) > 1e-9) return tell(`It must be a multiple of ${field.step}.`);
  return n;
}

class Reader {
  readonly problems = new Map<string, string>();

  read(field: SchemaField, draft: Draft, required: boolean, path: string): unknown {
    const tell: Told = (message) => {
      this.problems.set(path, message);
      return nothing;
    };
    const empty = (): unknown => (!required ? nothing : field.nullable ? null : tell(field.kind === 'choice' ? 'Choose one.' : 'This is needed.'));
    switch (field.kind) {
      case 'constant': return field.value;
      // An empty text is a value only where somebody has to say something and may say nothing.
      case 'text': return typeof draft !== 'string' || draft === '' ? (required && field.shortest === 0 && typeof draft === 'string' && !field.nullable ? '' : empty()) : readText(field, draft, tell);
      case 'number': return typeof draft !== 'string' || draft.trim() === '' ? empty() : readNumber(field, draft, tell);
      case 'boolean': return typeof draft === 'boolean' ? draft : required ? (field.nullable ? null : false) : nothing;
      case 'choice': return typeof draft === 'number' ? field.choices[draft]?.value : empty();
      case 'json': return this.#json(draft, empty, tell);
      case 'object': return this.#object(field, draft, required, path);
      case 'variants': {
        const { chosen, drafts } = draft as { chosen: number; drafts: readonly Draft[] };
        const variant = field.variants[chosen];
        return variant === undefined ? empty() : this.read(variant, drafts[chosen], required, path);
      }
      case 'several':
      case 'list': return this.#list(field, draft, required, path, tell);
    }
  }

  #json(draft: Draft, empty: () => unknown, tell: Told): unknown {
    if (typeof draft !== 'string' || draft.trim() === '') return empty();
    try {
      return JSON.parse(draft) as unknown;
    } catch (err) {
      return tell(`This is not JSON yet: ${err instanceof Error ? err.message : 'it cannot be read'}`);
    }
  }

  #object(field: Extract<SchemaField, { kind: 'object' }>, draft: Draft, required: boolean, path: string): unknown {
    const drafts = (draft as { members: Readonly<Record<string, Draft>> }).members;
    const before = new Map(this.problems);
    const values = field.members.map((m) => [m.name, this.read(m.field, drafts[m.name], m.required, `${path}/${m.name}`)] as const).filter(([, v]) => v !== nothing);
    // An optional object in which nothing was said is not said, whatever it would need.
    const said = values.some(([name]) => field.members.find((m) => m.name === name)?.field.kind !== 'constant');
    if (!required && path !== '' && !said && field.members.every((m) => untouched(m.field, drafts[m.name]))) {
      this.problems.clear();
      for (const [at, message] of before) this.problems.set(at, message);
      return nothing;
    }
    return Object.fromEntries(values);
  }

  #list(field: Extract<SchemaField, { kind: 'list' | 'several' }>, draft: Draft, required: boolean, path: string, tell: Told): unknown {
    const values = field.kind === 'several'
      ? field.choices.filter((_, i) => (draft as readonly boolean[])[i]).map((c) => c.value)
      : (draft as { rows: readonly { draft: Draft }[] }).rows.map((r, i) => this.read(field.item, r.draft, true, `${path}/${i}`)).filter((v) => v !== nothing);
    if (values.length === 0 && !required && (field.kind === 'several' || (draft as { rows: readonly unknown[] }).rows.length === 0)) return nothing;
    if (values.length < field.fewest) return tell(`At least ${field.fewest} are needed.`);
    if (values.length > field.most) return tell(`At most ${field.most} are allowed.`);
    return values;
  }
}

/** Whether nobody has filled in anything. */
function untouched(field: SchemaField, draft: Draft): boolean {
  return JSON.stringify(strip(draft)) === JSON.stringify(strip(draftOf(field)));
}

/** A draft without the ids of rows. */
function strip(draft: Draft): unknown {
  if (typeof draft !== 'object') return draft ?? '';
  if ('rows' in draft) return draft.rows.map((r) => strip(r.draft));
  if ('members' in draft) return Object.entries(draft.members).map(([k, v]) => [k, strip(v)]);
  if ('drafts' in draft) return [draft.chosen, ...draft.drafts.map(strip)];
  return draft;
}

export type Reading = { readonly value: unknown; readonly problems?: undefined } | { readonly value?: undefined; readonly problems: Problems };

/** The value that a draft says; or all that is wrong with it. undefined as a value: nothing is said. */
export function readDraft(field: SchemaField, draft: Draft, required = true): Reading {
  const reader = new Reader();
  const value = reader.read(field, draft, required, '');
  if (reader.problems.size > 0) return { problems: reader.problems };
  return { value: value === nothing ? undefined : value };
}

/** The name of a field. */
export const nameOf = (name: string, field: SchemaField): string => field.title || (name === '' ? 'Answer' : spaced(name));
