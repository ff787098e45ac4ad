import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holds, loginUrl, readQuestion, spokenWithNo, subjectOf } from './ask.ts';
import { draftOf } from '../ui/draft.ts';
import { readSchema } from '../ui/schema.ts';

const asked = (responseSchema: object | undefined, reason = 'input_required') => readQuestion({ id: 'i', reason, ...(responseSchema && { responseSchema: responseSchema as Record<string, unknown> }) });
const texts = (q: ReturnType<typeof readQuestion>) => q.replies.map((r) => r.text);

describe('questions', () => {
  it('are answered by buttons where the answers are few', () => {
    expect(texts(asked({ type: 'object', properties: { answer: { enum: ['tea', 'coffee'] } }, required: ['answer'] }))).toEqual(['tea', 'coffee']);
    expect(texts(asked({ type: 'boolean' }))).toEqual(['Yes', 'No']);
    expect(texts(asked({ type: 'object', required: ['outcome'], properties: { outcome: { enum: ['happened', 'did_not_happen'] }, result: { type: 'string' } } }))).toEqual(['happened', 'Did not happen']);
    expect(texts(asked({ type: 'object', properties: { continue: { type: 'boolean' }, iterations: { type: 'integer' } } }))).toEqual(['Go on', 'Stop']);
    expect(texts(asked({ type: 'object', properties: { answer: { enum: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] } } }))).toEqual([]);
    expect(texts(asked({ type: 'object', required: ['a', 'b'], properties: { a: { type: 'boolean' }, b: { type: 'boolean' } } }))).toEqual([]);
  });

  it('about a call can be approved, rejected and edited', () => {
    const q = asked({ type: 'object', required: ['approved'], properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, editedArgs: { type: 'object' } } }, 'tool_call');
    expect([texts(q), q.approves, q.editable]).toEqual([['Approve', 'Reject'], true, true]);
    expect(Object.keys(q.rest?.['properties'] as object)).toEqual(['reason']);
    expect(texts(asked(undefined, 'tool_call'))).toEqual(['Approve', 'Reject']);
    expect(asked(undefined).rest).toEqual({ type: 'string' });
  });

  it('have members of any name', () => {
    for (const name of ['constructor', 'toString', '__proto__']) {
      const q = asked(JSON.parse(`{"type": "object", "properties": {"${name}": {"type": "boolean"}}}`) as object);
      expect([texts(q), q.member]).toEqual([['Yes', 'No'], name]);
    }
  });

  it('say with a no what was filled in validly', () => {
    const field = readSchema({ type: 'object', properties: { reason: { type: 'string' }, count: { type: 'integer' }, free: {} } });
    expect(spokenWithNo(field, { members: { reason: 'no', count: 'x', free: '{}' } })).toEqual({ reason: 'no' });
  });

  it('never fail, whatever the schema is', () => {
    fc.assert(fc.property(fc.dictionary(fc.constantFrom('type', 'properties', 'required', 'enum', 'oneOf'), fc.jsonValue()), fc.jsonValue(), (schema, args) => {
      readQuestion({ id: 'i', reason: 'tool_call', responseSchema: schema });
      holds(schema, args);
      draftOf(readSchema(schema), args);
    }));
  });
});

describe('what a question is about', () => {
  it('is in its metadata, or is its call', () => {
    expect(subjectOf({ id: 'i', reason: 'r', metadata: { tool: 'pay', arguments: { a: 1 }, rule: 'money' } })).toEqual({ tool: 'pay', args: '{"a":1}', hiddenBytes: 0, rule: 'money', title: 'May pay run?' });
    expect(subjectOf({ id: 'i', reason: 'r', message: 'Sure?' }, { name: 'pay', args: '{}' })).toMatchObject({ tool: 'pay', args: '{}', title: 'Sure?' });
    expect(subjectOf({ id: 'i', reason: 'r', metadata: { tool: 'pay', argumentsBytes: 20_000 } }).hiddenBytes).toBe(20_000);
  });

  it('leads nowhere but to web pages', () => {
    const at = (url: unknown) => loginUrl({ id: 'i', reason: 'holdfast:login_required', metadata: { url } });
    expect([at('https://id.example/x'), at('javascript:alert(1)'), at(3)]).toEqual(['https://id.example/x', '', '']);
  });

  it('is edited in a form only if the form can hold it', () => {
    const schema = { type: 'object', properties: { amount: { type: 'number' } } };
    expect(holds(schema, { amount: 3 })).toBe(true);
    expect(holds(schema, { amount: 3, more: 1 })).toBe(false);
    expect(holds(undefined, {})).toBe(false);
  });
});
