import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { draftOf, readDraft } from './draft.ts';
import { readSchema, spaced, valueText, variantName, type SchemaField } from './schema.ts';

const kind = (schema: unknown) => readSchema(schema).kind;
/** The value of a form in which nothing was changed. */
const through = (schema: unknown, value: unknown) => {
  const field = readSchema(schema);
  return readDraft(field, draftOf(field, value)).value;
};
const wrong = (schema: unknown, value: unknown) => {
  const field = readSchema(schema);
  return Object.fromEntries(readDraft(field, draftOf(field, value)).problems ?? []);
};

describe('schemas as forms', () => {
  it('finds the field for each kind', () => {
    expect(kind({ type: 'string' })).toBe('text');
    expect(kind({ type: ['integer', 'null'] })).toBe('number');
    expect(kind({ type: 'boolean' })).toBe('boolean');
    expect(kind({ enum: ['a', 'b'] })).toBe('choice');
    expect(kind({ oneOf: [{ const: 1, title: 'One' }, { const: 2 }] })).toBe('choice');
    expect(kind({ type: 'array', items: { enum: ['a'] } })).toBe('several');
    expect(kind({ type: 'array', items: { type: 'string' } })).toBe('list');
    expect(kind({ properties: { a: {} } })).toBe('object');
    expect(kind({ oneOf: [{ type: 'string' }, { type: 'number' }] })).toBe('variants');
    expect(kind({ anyOf: [{ type: 'string' }, { type: 'null' }] })).toBe('text');
    expect(kind({ const: 3 })).toBe('constant');
    for (const odd of [undefined, null, true, 3, [], {}, { type: 'object' }, { type: ['string', 'number'] }]) expect(kind(odd)).toBe('json');
  });

  it('follows references and ends those that lead to themselves', () => {
    const tree = { $defs: { node: { type: 'object', properties: { name: { type: 'string' }, next: { $ref: '#/$defs/node' } } } }, $ref: '#/$defs/node' };
    const field = readSchema(tree);
    expect(field.kind === 'object' && field.members.map((m) => m.field.kind)).toEqual(['text', 'object']);
    expect(kind({ $ref: '#' })).toBe('json');
    expect(kind({ $ref: '#/missing' })).toBe('json');
  });

  it('stays a form of a size that can be filled in, however often a schema refers to itself', () => {
    const size = (field: SchemaField): number => 1 + (field.kind === 'object' ? field.members.map((m) => size(m.field)) : field.kind === 'variants' ? field.variants.map(size) : field.kind === 'list' ? [size(field.item)] : []).reduce((a, b) => a + b, 0);
    const names = Array.from({ length: 7 }, (_, i) => `member${i}`);
    const wide = readSchema({ type: 'object', properties: Object.fromEntries(names.map((n) => [n, { $ref: '#' }])) });
    expect(wide.kind === 'object' && wide.members.map((m) => m.field.kind)).toEqual(names.map(() => 'object'));
    expect(size(wide)).toBeLessThan(2000);
    expect(size(readSchema({ oneOf: names.map(() => ({ $ref: '#' })) }))).toBeLessThan(2000);
    let read = 0;
    const counted = new Proxy({ allOf: names.map(() => ({ $ref: '#' })) }, { ownKeys: (of) => (read++, Reflect.ownKeys(of)) });
    readSchema(counted);
    expect(read).toBeLessThan(10_000);
  });

  it('joins the parts of allOf', () => {
    const field = readSchema({ allOf: [{ properties: { a: { type: 'string' } }, required: ['a'] }, { properties: { b: { type: 'number' } } }] });
    expect(field.kind === 'object' && field.members.map((m) => [m.name, m.required])).toEqual([['a', true], ['b', false]]);
  });

  it('names things as people write them', () => {
    expect(spaced('editedArgs')).toBe('Edited args');
    expect(valueText('did_not_happen')).toBe('Did not happen');
    expect(valueText('tea')).toBe('tea');
    expect(variantName(readSchema({ properties: { kind: { const: 'bank_card' } } }), 0)).toBe('Bank card');
  });
});

describe('drafts', () => {
  const order = {
    type: 'object', required: ['item', 'count'],
    properties: {
      item: { type: 'string', minLength: 2, maxLength: 10 }, count: { type: 'integer', minimum: 1, exclusiveMaximum: 10 },
      extras: { type: 'array', items: { enum: ['milk', 'sugar'] } }, gift: { type: 'boolean' },
      to: { type: 'object', required: ['street'], properties: { street: { type: 'string' }, zip: { type: 'string', pattern: '^\\d+$' } } },
      notes: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    },
  };

  it('says what was filled in and nothing else', () => {
    expect(through(order, { item: 'tea', count: 2 })).toEqual({ item: 'tea', count: 2 });
    const all = { item: 'tea', count: 2, extras: ['sugar'], gift: false, to: { street: 'Main', zip: '12' }, notes: ['a', 'b'] };
    expect(through(order, all)).toEqual(all);
  });

  it('says all that is wrong, and where', () => {
    expect(wrong(order, { item: 't', count: 10, to: { zip: 'x' }, notes: ['a', 'b', 'c'] })).toEqual({
      '/item': 'At least 2 characters.', '/count': 'It must be less than 10.', '/to/street': 'This is needed.', '/to/zip': 'It must match ^\\d+$', '/notes': 'At most 2 are allowed.',
    });
    expect(wrong(order, {})).toEqual({ '/item': 'This is needed.', '/count': 'This is needed.' });
  });

  it('knows what is no number yet', () => {
    const field = readSchema({ type: 'integer', multipleOf: 5 });
    for (const [text, message] of [['-', 'This is no number.'], ['1.5', 'It must be a whole number.'], ['7', 'It must be a multiple of 5.']] as const) expect(readDraft(field, text).problems?.get('')).toBe(message);
    expect(readDraft(field, '15').value).toBe(15);
  });

  it('says nothing for null where it must say something', () => {
    expect(through({ type: 'object', required: ['a'], properties: { a: { type: ['string', 'null'] } } }, {})).toEqual({ a: null });
  });

  it('takes the variant that a value fits', () => {
    const pay = { oneOf: [{ properties: { by: { const: 'card' }, number: { type: 'string' } }, required: ['by'] }, { properties: { by: { const: 'cash' } }, required: ['by'] }] };
    expect(through(pay, { by: 'cash' })).toEqual({ by: 'cash' });
    expect(through(pay, undefined)).toEqual({ by: 'card' });
  });

  it('never throws, whatever the schema and the value are', () => {
    const json = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 4 }, fc.jsonValue(), fc.dictionary(fc.constantFrom('type', 'properties', 'items', 'oneOf', 'anyOf', 'allOf', 'enum', 'const', 'required', '$ref', 'default', 'pattern', 'format', 'minItems'), fc.oneof(tie('any'), fc.array(tie('any'), { maxLength: 3 }), fc.constantFrom('string', 'object', 'array', 'integer', '#', '#/properties', '((')), { maxKeys: 5 })),
    })).any;
    fc.assert(fc.property(json, fc.jsonValue(), (schema, value) => {
      const field = readSchema(schema);
      readDraft(field, draftOf(field, value));
      readDraft(field, draftOf(field), false);
    }));
  });
});
