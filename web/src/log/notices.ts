// The texts of the server and the middlewares in CUSTOM events, in one line each.

import { fields, isFields, list, number, text, type Fields } from './json';
import { bytes } from '../ui/time';
import { amount, count, names, spaced, span } from './words';

const spent = (v: Fields): string => `the ${text(v['scope'])} has used ${amount(v['used'])} of ${amount(v['limit'])} ${text(v['currency']) || text(v['unit'])}`;

/** A duration as Go writes it, without zeros at its end. */
const shortly = (duration: unknown): string => String(duration).replace(/(\D)0s$/, '$1').replace(/(\D)0m$/, '$1');

function rate(v: Fields): string {
  const name = text(v['name']);
  const tool = text(v['tool']);
  const calls = tool === '' ? count(v['limit'], 'model call') : count(v['limit'], `call of ${tool}`, `calls of ${tool}`);
  return `${name !== '' && name !== 'default' ? `“${name}”, ` : ''}${calls} in ${shortly(v['window'])}`;
}

/** A time of day, where the page is read. */
const clock = (at: unknown): string => (typeof at === 'string' || typeof at === 'number' ? new Date(at).toLocaleTimeString() : '');

/** The first names of what has changed. */
function schema(v: Fields): string {
  const short = (value: unknown): string => list(value).map((n) => text(n).split('.').at(-1)).join(', ');
  const facts = [
    list(v['removed']).length > 0 ? `without ${short(v['removed'])}` : '',
    list(v['added']).length > 0 ? `with ${short(v['added'])}` : '',
    ...list(v['changed']).map(fields).map((c) => `${short([c['name']])} ${amount(c['from'])} → ${amount(c['to'])}`),
  ].filter(Boolean);
  return 'This thread was written by another version of the agent’s state' + (facts.length > 0 ? `; now ${facts.join(', ')}.` : '.');
}

function described(v: Fields): string {
  const facts = [
    typeof v['title'] === 'string' ? (v['title'] === '' ? 'The title is the server’s again.' : `Renamed to “${v['title']}”.`) : '',
    v['hidden'] === true ? 'Put away.' : v['hidden'] === false ? 'Shown again.' : '',
  ];
  return facts.filter(Boolean).join(' ');
}

const own: Readonly<Record<string, (v: Fields) => string>> = {
  waiting: (v) => `The run has lost its server, and waits for one with revision ${text(v['revision'])}${v['until'] === undefined ? '' : `, until ${clock(v['until'])}`}.`,
  marked: (v) => (text(v['label']) === '' ? 'A checkpoint was taken.' : `Checkpoint “${text(v['label'])}” was taken.`),
  outside_calls: () => '', // the calls themselves are shown as waiting
  retry: () => 'The model broke off. Its unfinished answer was discarded, and it was asked again.',
  fallback: (v) => `${text(v['from'])} could not answer. From here on, ${text(v['to'])} does.`,
  output_retry: () => 'The answer did not fit its form. The model was asked once more.',
  reasoning_refused: (v) => `${text(v['provider'])} did not take back its earlier reasoning. The model was asked without it.`,
  content_left_out: (v) => `The model cannot take this: ${names(v['content'])}.`,
  output_left_out: (v) => `Left out of the answer: ${names(v['content'])}.`,
  schema_changed: schema,
  state_conflict: (v) => `The page and others changed ${count(v['count'], 'place')} of the shared state. ${v['kept'] === 'page' ? 'The page’s' : 'The others’'} changes hold.`,
  state_patched: (v) => (v['code'] === undefined ? 'A request changed the shared state.' : `A request could not change the shared state. ${text(v['message'])}`),
  store_recovered: (v) => `The store was unavailable${typeof v['outageMs'] === 'number' ? ` for ${span(v['outageMs'])}` : ' for a while'}. Nothing was lost.`,
  thread_large: (v) => `This thread is large: ${bytes(number(v['bytes']) ?? 0)}.`,
  described,
  circuit_open: (v) => `${text(v['tool'])} was called ${count(v['count'], 'time')} in a row with the same arguments. The last call was not run.`,
  too_many_errors: (v) => `Tools failed in ${count(v['failures'], 'iteration')} in a row.`,
  budget_warning: (v) => `Budget nearly used: ${spent(v)}.`,
  budget_exceeded: (v) => `Budget used: ${spent(v)}, and the next call needs ${amount(v['needed'])}.`,
  budget_unreported: (v) => `The model did not report its usage; ${count(v['tokens'], 'token')} are counted.`,
  rate_limited: (v) => `Rate limit reached: ${rate(v)}${v['retryAt'] === undefined ? '' : `, again at ${clock(v['retryAt'])}`}.`,
  rate_limit_unchecked: (v) => `A rate limit could not be checked: ${rate(v)}.`,
  continuation_granted: (v) => `The run may continue for ${count(v['iterations'], 'iteration')}${v['remembered'] === true ? ', as answered before' : ''}.`,
  continuation_refused: (v) => `The run may not continue after ${count(v['used'], 'iteration')}: ${text(v['why'])}.`,
  permission_denied: (v) => `${text(v['tool'])} was not allowed, by ${v['by'] === 'person' ? 'a person' : v['by'] === 'remembered' ? 'an earlier answer' : 'a rule'}.`,
  permission_remembered: (v) => `Remembered for this ${text(v['scope'])}: ${text(v['tool'])} ${v['allow'] === true ? 'is allowed' : 'is not allowed'}.`,
  permission_not_remembered: (v) => `The answer about ${text(v['tool'])} could not be kept; it counts for this call only.`,
  retried: (v) => `${text(v['tool'])} was tried ${count(v['attempts'], 'time')}; ${v['helped'] === true ? 'the last attempt succeeded' : 'no attempt succeeded'}.`,
  history_summarised: (v) => `For the model, ${count(v['messages'], 'older message')} became a summary.`,
  summary_failed: (v) => `${count(v['messages'], 'older message')} could not be summarized for the model: ${text(v['reason'])}.`,
  redacted: (v) => `${count(v['count'], 'text')} hidden (${names(v['names'])}) from ${names(v['where'])}.`,
};

const clip = (said: string): string => (said.length > 80 ? said.slice(0, 80) + '…' : said);

/** Whether a value can be said in a word. */
const plain = (value: unknown): boolean => value !== null && (typeof value !== 'object' || (Array.isArray(value) && value.length > 0 && value.every((x) => typeof x !== 'object')));

/** The name, and the values that can be said in a word. */
function plainly(name: string, value: unknown): string {
  const facts: [string, unknown][] = isFields(value) ? Object.entries(value) : value === undefined || value === null ? [] : [['', value]];
  const said = facts.filter(([, v]) => plain(v)).slice(0, 5).map(([k, v]) => [k && spaced(k).toLowerCase(), clip(names(v))].filter(Boolean).join(' ')).join(', ');
  return spaced(name) + (said === '' ? '' : `: ${said}`) + '.';
}

/** The text of a CUSTOM event; '' for one that is not the server's or a middleware's. */
export function notice(name: string, value: unknown): string {
  const found = /^holdfast\.(\w+)$/.exec(name)?.[1];
  if (found === undefined) return '';
  if (!Object.hasOwn(own, found)) return plainly(found, value);
  return (own[found] as (v: Fields) => string)(fields(value));
}
