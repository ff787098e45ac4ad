// A question to a person, as a form sees it: buttons that answer it, and fields that add to
// the answer.
import { draftOf, readDraft, type Draft } from '../ui/draft.ts';
import { fewChoices, readSchema, valueText, type SchemaField } from '../ui/schema.ts';
import { isFields, type Fields } from '../log/json.ts';
import type { Interrupt } from '../log/view.ts';

/** An answer that one button gives. */
export interface Reply {
  readonly text: string;
  readonly value: unknown;
}

export interface Question {
  readonly interrupt: Interrupt;
  /** The buttons; none if the form has to be filled in. */
  readonly replies: readonly Reply[];
  /** The member of the payload that a button sets; '' if its value is the payload. */
  readonly member: string;
  /** The other answers, as a schema; undefined if nothing. */
  readonly rest: Fields | undefined;
  /** It asks whether a call may be made. */
  readonly approves: boolean;
  /** The arguments of the call may be changed. */
  readonly editable: boolean;
}

const yesAndNo = new Map<string, readonly [string, string]>([['approved', ['Approve', 'Reject']], ['allow', ['Allow', 'Deny']], ['continue', ['Go on', 'Stop']]]);

/** The schema of the answer; a question without one asks for words, or for a yes. */
export function schemaOf(interrupt: Interrupt): Fields {
  if (isFields(interrupt.responseSchema)) return interrupt.responseSchema;
  if (interrupt.reason === 'tool_call' || interrupt.reason === 'confirmation') return { type: 'object', required: ['approved'], properties: { approved: { type: 'boolean' } } };
  return { type: 'string' };
}

/** The buttons for a field that has few answers; undefined if it has not. */
function repliesOf(name: string, field: SchemaField | undefined): readonly Reply[] | undefined {
  if (field?.kind === 'boolean') {
    const [yes, no] = yesAndNo.get(name) ?? ['Yes', 'No'];
    return [{ text: yes, value: true }, { text: no, value: false }];
  }
  if (field?.kind === 'choice' && field.choices.length > 0 && field.choices.length <= fewChoices && field.choices.every((c) => c.text.length <= 60)) return field.choices.map((c) => ({ text: c.text || valueText(c.value), value: c.value }));
  return undefined;
}

/** The member that the question is about, if buttons can answer it; the others add to it. */
function asked(field: SchemaField): string {
  if (field.kind !== 'object') return '';
  const names = field.members.map((m) => m.name);
  const yes = ['approved', 'allow', 'continue'].find((n) => field.members.some((m) => m.name === n && m.field.kind === 'boolean'));
  if (yes) return yes;
  const needed = names.length === 1 ? names : field.members.filter((m) => m.required).map((m) => m.name);
  return needed.length === 1 ? (needed[0] ?? '') : '';
}

/** The schema without some members; undefined if none is left. */
function without(schema: Fields, names: readonly string[]): Fields | undefined {
  const properties = Object.fromEntries(Object.entries(isFields(schema['properties']) ? schema['properties'] : {}).filter(([name]) => !names.includes(name)));
  if (Object.keys(properties).length === 0) return undefined;
  const required = (Array.isArray(schema['required']) ? schema['required'] : []).filter((name) => !names.includes(String(name)));
  return { ...schema, properties, required };
}

/** Reads a question. It never throws, whatever the schema is. */
export function readQuestion(interrupt: Interrupt): Question {
  const schema = schemaOf(interrupt);
  const field = readSchema(schema);
  const member = asked(field);
  const replies = field.kind === 'object'
    ? repliesOf(member, field.members.find((m) => m.name === member)?.field)
    : repliesOf('', field);
  const approves = replies !== undefined && member === 'approved';
  const editable = approves && field.kind === 'object' && field.members.some((m) => m.name === 'editedArgs');
  if (replies === undefined) return { interrupt, replies: [], member: '', rest: schema, approves: false, editable: false };
  // Only what is written out as properties can be taken apart; what is not is left to the defaults.
  const rest = member === '' ? undefined : without(schema, [member, ...(editable ? ['editedArgs'] : [])]);
  return { interrupt, replies, member, rest, approves, editable };
}

/** The values of the fields with a no: it does not depend on them, so what is invalid in them is left out. */
export function spokenWithNo(field: SchemaField, draft: Draft): Fields {
  if (field.kind !== 'object' || typeof draft !== 'object' || !('members' in draft)) return {};
  const said: [string, unknown][] = [];
  for (const m of field.members) {
    const { value } = readDraft(m.field, draft.members[m.name], false);
    if (value !== undefined && m.field.kind !== 'json') said.push([m.name, value]);
  }
  return Object.fromEntries(said);
}

/** Whether a form of a schema can hold a value whole, so that nothing is lost when it is edited there. */
export function holds(schema: unknown, value: unknown): boolean {
  const field = readSchema(schema);
  if (field.kind !== 'object') return false;
  const { value: back } = readDraft(field, draftOf(field, value));
  return canonical(back) === canonical(value);
}

/** JSON in which the order of members does not matter. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (isFields(value)) return `{${Object.keys(value).sort().map((k) => `${JSON.stringify(k)}:${canonical(value[k])}`).join()}}`;
  return JSON.stringify(value) ?? 'undefined';
}

/** The subject of a question: the tool, its arguments, the rule that asks. */
export function subjectOf({ metadata = {}, message }: Interrupt, call?: { name: string; args: string }): { tool: string; args: string; hiddenBytes: number; rule: string; title: string } {
  const tool = typeof metadata['tool'] === 'string' ? metadata['tool'] : call?.name ?? '';
  const given = metadata['arguments'];
  const args = given === undefined ? call?.args ?? '' : typeof given === 'string' ? given : JSON.stringify(given);
  const rule = typeof metadata['rule'] === 'string' && metadata['rule'] !== tool ? metadata['rule'] : '';
  return { tool, args, hiddenBytes: args === '' && typeof metadata['argumentsBytes'] === 'number' ? metadata['argumentsBytes'] : 0, rule, title: message || (tool ? `May ${tool} run?` : 'An answer is needed') };
}

/** Where a person logs in, if the question is about that. */
export function loginUrl({ reason, metadata }: Interrupt): string {
  const url = reason === 'holdfast:login_required' ? metadata?.['url'] : undefined;
  return typeof url === 'string' && /^https?:\/\//.test(url) ? url : '';
}
