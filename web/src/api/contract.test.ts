// The types of the page against the server's description of itself: every type has exactly the
// members of the schema of its name, and those that must be there are not optional.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

const here = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

const { schemas } = JSON.parse(here('../../../internal/http/components.json')) as { schemas: Record<string, Schema> };

interface Member {
  readonly name: string;
  readonly optional: boolean;
}

/** The interfaces of a source, with their members; nested literals are one member. */
function interfaces(source: string): Map<string, Member[]> {
  const found = new Map<string, Member[]>();
  for (const [, name = '', parent, body = ''] of source.matchAll(/^export interface (\w+)(?: extends (\w+))? \{\n([\s\S]*?)^\}/gm)) {
    const own = [...body.matchAll(/^ {2}readonly (\w+)(\??):/gm)].map(([, member = '', optional]) => ({ name: member, optional: optional === '?' }));
    found.set(name, [...(parent === undefined ? [] : (found.get(parent) ?? [])), ...own]);
  }
  return found;
}

/** A schema that has no name: it is a part of another one. */
function within(name: string, ...path: readonly string[]): Schema | undefined {
  return path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], schemas[name]) as Schema | undefined;
}

const parts: Readonly<Record<string, Schema | undefined>> = {
  AgentTool: within('Agent', 'properties', 'tools', 'items'),
  Waiting: within('ThreadInfo', 'properties', 'waiting'),
  RunProcess: within('RunInfo', 'properties', 'processes', 'items'),
  Call: within('CallList', 'properties', 'calls', 'items'),
  Question: within('QuestionList', 'properties', 'questions', 'items'),
  OverviewRuns: within('Overview', 'properties', 'runs'),
  Setting: within('SettingList', 'properties', 'settings', 'items'),
};

const types = interfaces(here('types.ts'));

describe('the page’s types', () => {
  it('are found', () => {
    expect(types.size).toBeGreaterThan(20);
    expect(types.get('CheckpointDetail')?.length).toBeGreaterThan(types.get('Checkpoint')?.length ?? 0);
  });

  it.each([...types])('%s has the members of its schema', (name, members) => {
    const schema = Object.hasOwn(parts, name) ? parts[name] : schemas[name];
    expect(schema, `there is no schema ${name}`).toBeDefined();
    expect(members.map((member) => member.name).sort()).toEqual(Object.keys(schema?.properties ?? {}).sort());
    expect(members.filter((member) => !member.optional).map((member) => member.name).sort()).toEqual([...(schema?.required ?? [])].sort());
  });
});
