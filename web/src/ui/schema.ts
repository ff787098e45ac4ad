// A JSON Schema as a form sees it: what there is to fill in, and what may be filled in. What
// no field can be made of becomes a field for JSON, so that every schema has a form.

/** The fields that all have in common. */
interface FieldBase {
  /** The schema's name for it; '' if it does not. */
  readonly title: string;
  readonly about: string;
  /** Its first content; undefined for nothing. */
  readonly initial: unknown;
  /** null is a value too, and stands for an empty field that must be sent. */
  readonly nullable: boolean;
}

export interface Choice {
  readonly text: string;
  readonly value: unknown;
}

export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly field: SchemaField;
}

export type SchemaField = FieldBase & (
  | { readonly kind: 'text'; readonly format: string; readonly long: boolean; readonly shortest: number; readonly longest: number; readonly pattern: string }
  | { readonly kind: 'number'; readonly whole: boolean; readonly least: number; readonly most: number; readonly above: number; readonly below: number; readonly step: number }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'choice'; readonly choices: readonly Choice[] }
  | { readonly kind: 'several'; readonly choices: readonly Choice[]; readonly fewest: number; readonly most: number }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | { readonly kind: 'list'; readonly item: SchemaField; readonly fewest: number; readonly most: number }
  | { readonly kind: 'variants'; readonly variants: readonly SchemaField[] }
  | { readonly kind: 'constant'; readonly value: unknown }
  | { readonly kind: 'json' }
);

type Fields = Readonly<Record<string, unknown>>;

/** Forms are not deeper than this: what is below is JSON. It also ends schemas that refer to themselves. */
const deepest = 6;

/** So many schemas, and references to them, are followed in one; a larger one is read less deeply. */
const mostParts = 1500;

/** A schema while it is read. */
interface Scope {
  readonly root: unknown;
  readonly deepest: number;
  /** How many more parts are followed; below 0 it was too large. */
  left: number;
}

/** A list of choices is shown whole up to this many. */
export const fewChoices = 6;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown, otherwise: number): number => (typeof value === 'number' && Number.isFinite(value) ? value : otherwise);
const array = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A program's name as people write it: "editedArgs" and "edited_args" become "Edited args". */
export function spaced(name: string): string {
  const words = name.replace(/[_-]+/g, ' ').replace(/([a-z\d])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`).trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Codes like "did_not_happen" are words; other values are shown as they are. */
export function valueText(value: unknown): string {
  if (typeof value === 'string') return /^[a-z]+(_[a-z]+)+$/.test(value) ? spaced(value) : value;
  return value === null ? 'none' : JSON.stringify(value) ?? '';
}

/** Follows a reference inside the schema; undefined if it leads nowhere. */
function resolve(root: unknown, ref: string): unknown {
  if (!ref.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const part of ref.slice(1).split('/').filter(Boolean)) {
    const name = part.replace(/~1/g, '/').replace(/~0/g, '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Fields)[name];
  }
  return at;
}

/** The schema with its reference and the parts of its allOf in one object. */
function merged(of: Scope, schema: unknown, depth = 0): Fields {
  if (!isFields(schema) || depth > deepest || --of.left < 0) return {};
  const { $ref, allOf, ...own } = schema;
  const parts = [...(typeof $ref === 'string' ? [resolve(of.root, $ref)] : []), ...array(allOf)].map((part) => merged(of, part, depth + 1));
  let all: Fields = {};
  for (const part of [...parts, own]) {
    all = { ...all, ...part, properties: { ...(all['properties'] as Fields), ...(part['properties'] as Fields) }, required: [...array(all['required']), ...array(part['required'])] };
  }
  const { properties, required, ...rest } = all;
  return { ...rest, ...(Object.keys(properties as Fields).length > 0 ? { properties } : {}), ...(array(required).length > 0 ? { required } : {}) };
}

const isNull = (schema: Fields): boolean => schema['type'] === 'null' || ('const' in schema && schema['const'] === null);

/** The choices of an enum, or of alternatives that are one value each; undefined if it is neither. */
function choicesOf(schema: Fields, alternatives: readonly Fields[]): Choice[] | undefined {
  if (Array.isArray(schema['enum'])) {
    const names = array(schema['enumNames']);
    return schema['enum'].map((value, i) => ({ value, text: text(names[i]) || valueText(value) }));
  }
  if (alternatives.length > 0 && alternatives.every((each) => 'const' in each)) return alternatives.map((each) => ({ value: each['const'], text: text(each['title']) || valueText(each['const']) }));
  return undefined;
}

function typeOf(schema: Fields): string {
  const type = Array.isArray(schema['type']) ? schema['type'].filter((t) => t !== 'null') : [schema['type']];
  if (type.length === 1 && typeof type[0] === 'string') return type[0];
  if (isFields(schema['properties'])) return 'object';
  if (schema['items'] !== undefined) return 'array';
  return type.length > 1 ? 'json' : schema['minLength'] !== undefined || schema['pattern'] !== undefined ? 'string' : 'json';
}

function textField(schema: Fields): Pick<Extract<SchemaField, { kind: 'text' }>, 'kind' | 'format' | 'long' | 'shortest' | 'longest' | 'pattern'> {
  const longest = number(schema['maxLength'], Infinity);
  const format = text(schema['format']);
  return { kind: 'text', format, long: format === '' && longest > 120, shortest: number(schema['minLength'], 0), longest, pattern: text(schema['pattern']) };
}

function listField(of: Scope, schema: Fields, depth: number): Record<string, unknown> & { kind: 'several' | 'list' | 'json' } {
  const limits = { fewest: number(schema['minItems'], 0), most: number(schema['maxItems'], Infinity) };
  const item = parse(of, schema['items'], depth + 1);
  if (item.kind === 'choice') return { kind: 'several', choices: item.choices, ...limits };
  return isFields(schema['items']) ? { kind: 'list', item, ...limits } : { kind: 'json' };
}

function objectField(of: Scope, schema: Fields, depth: number): { kind: 'object'; members: Member[] } | { kind: 'json' } {
  const properties = isFields(schema['properties']) ? schema['properties'] : {};
  const required = new Set(array(schema['required']));
  const members = Object.keys(properties).map((name) => ({ name, required: required.has(name), field: parse(of, properties[name], depth + 1) }));
  const open = members.length === 0 && schema['additionalProperties'] !== false;
  return open ? { kind: 'json' } : { kind: 'object', members };
}

function parse(of: Scope, value: unknown, depth: number): SchemaField {
  const schema = merged(of, value);
  const all = (array(schema['oneOf']).length > 0 ? array(schema['oneOf']) : array(schema['anyOf'])).map((each) => merged(of, each));
  const alternatives = all.filter((each) => !isNull(each));
  const nullable = alternatives.length < all.length || array(schema['type']).includes('null') || array(schema['enum']).includes(null);
  const base: FieldBase = { title: text(schema['title']), about: text(schema['description']), initial: schema['default'], nullable };
  if (depth > of.deepest || of.left < 0) return { ...base, kind: 'json' };
  if ('const' in schema) return { ...base, kind: 'constant', value: schema['const'] };
  const choices = choicesOf(schema, alternatives);
  if (choices !== undefined) return { ...base, kind: 'choice', choices };
  if (alternatives.length === 1) {
    const only = parse(of, { ...alternatives[0], ...(base.title && { title: base.title }), ...(base.about && { description: base.about }), ...('default' in schema ? { default: schema['default'] } : {}) }, depth);
    return { ...only, nullable: nullable || only.nullable };
  }
  if (alternatives.length > 1) {
    const shared = schema['properties'] === undefined ? {} : { type: 'object', properties: schema['properties'] };
    const variants = alternatives.map((each) => parse(of, { allOf: [shared, each], ...('title' in each ? { title: each['title'] } : {}) }, depth + 1));
    // Alternatives that only say what else is required are no variants of the form.
    if (alternatives.every((each) => Object.keys(each).every((k) => k === 'required'))) return { ...base, ...objectField(of, schema, depth) };
    return { ...base, kind: 'variants', variants };
  }
  switch (typeOf(schema)) {
    case 'string': return { ...base, ...textField(schema) };
    case 'boolean': return { ...base, kind: 'boolean' };
    case 'integer':
    case 'number':
      return { ...base, kind: 'number', whole: typeOf(schema) === 'integer', least: number(schema['minimum'], -Infinity), most: number(schema['maximum'], Infinity), above: number(schema['exclusiveMinimum'], -Infinity), below: number(schema['exclusiveMaximum'], Infinity), step: number(schema['multipleOf'], 0) };
    case 'array': return { ...base, ...listField(of, schema, depth) } as SchemaField;
    case 'object': return { ...base, ...objectField(of, schema, depth) };
    default: return { ...base, kind: 'json' };
  }
}

/** Reads a schema. It never throws: what it cannot make sense of is a field for JSON. */
export function readSchema(schema: unknown): SchemaField {
  for (let depth = deepest; ; depth--) {
    const scope: Scope = { root: schema, deepest: depth, left: mostParts };
    const field = parse(scope, schema, 0);
    if (scope.left >= 0 || depth === 0) return field;
  }
}

/** The name of a variant: its title, or what it is. */
export function variantName(field: SchemaField, index: number): string {
  if (field.title) return field.title;
  if (field.kind === 'object') {
    const constant = field.members.find((m) => m.field.kind === 'constant');
    if (constant?.field.kind === 'constant') return valueText(constant.field.value);
  }
  const kinds: Partial<Record<SchemaField['kind'], string>> = { text: 'Text', number: 'Number', boolean: 'Yes or no', list: 'List', several: 'List' };
  return kinds[field.kind] ?? `Form ${index + 1}`;
}
