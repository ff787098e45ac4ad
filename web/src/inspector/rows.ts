// The list of events as rows: runs, in them iterations, in them what was said and done, in it
// records; or the records alone. A row that is filtered away, or closed, does not exist.
import { group, kindOf, type Entry, type EntryKind, type Iteration, type RunGroup } from '../log/group.ts';
import { fields, list, text } from '../log/json.ts';
import { isShown, type Log, type LogRecord } from '../log/record.ts';

export type EventRow =
  | { readonly kind: 'run'; readonly id: string; readonly run: RunGroup; readonly place: number; readonly open: boolean }
  | { readonly kind: 'iteration'; readonly id: string; readonly iteration: Iteration; readonly open: boolean }
  | { readonly kind: 'entry'; readonly id: string; readonly entry: Entry; readonly open: boolean; /** How many of its records are looked for. */ readonly found: number }
  | { readonly kind: 'record'; readonly id: string; readonly index: number; readonly inside: boolean };

/** The families by which events are filtered, and what they are called. */
export const families: readonly (readonly [kind: EntryKind, name: string])[] = [
  ['run', 'Runs'], ['text', 'Text'], ['reasoning', 'Reasoning'], ['call', 'Tool calls'], ['state', 'State'], ['snapshot', 'Messages'],
  ['activity', 'Activities'], ['step', 'Steps'], ['agent', 'Subagents'], ['notice', 'Notices'], ['takeover', 'Takeovers'], ['other', 'Others'],
];

/** Which records were looked for and found; undefined while nothing is looked for. */
export interface Found {
  /** The query, in small letters. */
  readonly query: string;
  readonly has: (index: number) => boolean;
}

export interface Chosen {
  readonly grouped: boolean;
  /** The families that are shown; undefined for all. */
  readonly kinds?: ReadonlySet<EntryKind>;
  readonly found?: Found;
  /** The rows that differ from the beginning: runs and iterations are open then, entries closed. */
  readonly toggled: ReadonlySet<string>;
}

const shows = (kinds: Chosen['kinds'], kind: EntryKind): boolean => kinds === undefined || kinds.has(kind);

function flat(log: Log, { kinds, found }: Chosen): EventRow[] {
  const rows: EventRow[] = [];
  for (let index = 0; index < log.length; index++) {
    if ((found && !found.has(index)) || isShown(log.at(index) as LogRecord)) continue;
    if (kinds && !kinds.has(kindOf(log.at(index) as LogRecord))) continue;
    rows.push({ kind: 'record', id: `#${index}`, index, inside: false });
  }
  return rows;
}

/** The rows of what is in an iteration. */
function entriesOf(iteration: Iteration, { kinds, found, toggled }: Chosen): EventRow[] {
  const rows: EventRow[] = [];
  for (const entry of iteration.entries) {
    if (!shows(kinds, entry.kind)) continue;
    const hits = found ? entry.records.filter((index) => found.has(index)) : entry.records;
    // A word may be in a text and in none of its pieces.
    if (found && hits.length === 0 && !entry.text.toLowerCase().includes(found.query)) continue;
    const open = entry.records.length > 1 && toggled.has(entry.id);
    rows.push({ kind: 'entry', id: entry.id, entry, open, found: hits.length });
    if (open) for (const index of hits) rows.push({ kind: 'record', id: `#${index}`, index, inside: true });
  }
  return rows;
}

function grouped(log: Log, chosen: Chosen): EventRow[] {
  const rows: EventRow[] = [];
  const runs = group(log);
  runs.forEach((run, place) => {
    const id = `run:${place}:${run.runId}`;
    const open = !chosen.toggled.has(id);
    const inside: EventRow[] = [];
    for (const iteration of run.iterations) {
      const entries = entriesOf(iteration, chosen);
      if (entries.length === 0) continue;
      // A run of one iteration needs no heading for it.
      if (run.iterations.length === 1) {
        inside.push(...entries);
        continue;
      }
      const at = `it:${iteration.id}`;
      const shown = !chosen.toggled.has(at);
      inside.push({ kind: 'iteration', id: at, iteration, open: shown });
      if (shown) for (const row of entries) inside.push(row);
    }
    if (inside.length === 0) return;
    rows.push({ kind: 'run', id, run, place, open });
    if (open) for (const row of inside) rows.push(row);
  });
  return rows;
}

/** The rows of a log. */
export const rowsOf = (log: Log, chosen: Chosen): readonly EventRow[] => (chosen.grouped ? grouped(log, chosen) : flat(log, chosen));

/** Whether a sorted list has a number. */
function has(sorted: readonly number[], wanted: number): boolean {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === wanted;
}

/** The row that shows a record: its own, or that of the closed entry which it is in; -1 if it has none. */
export function rowOf(rows: readonly EventRow[], index: number): number {
  if (index < 0) return -1;
  let entry = -1;
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as EventRow;
    if (row.kind === 'record' && row.index === index) return at;
    if (row.kind === 'entry' && has(row.entry.records, index)) entry = at;
  }
  return entry;
}

/** Whether a log has a record there. */
export const listed = (log: Log, index: number): boolean => {
  const record = log.at(index);
  return record !== undefined && !isShown(record);
};

/** Which families a log has, and how many records of each. */
export function countsOf(log: Log): ReadonlyMap<EntryKind, number> {
  const counts = new Map<EntryKind, number>();
  for (let i = 0; i < log.length; i++) {
    const record = log.at(i) as LogRecord;
    if (isShown(record)) continue;
    const kind = kindOf(record);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** How many characters a row says of what is in a record. */
const most = 200;

const short = (said: string): string => said.slice(0, most * 2).replace(/\s+/g, ' ').slice(0, most);

/** A value in one line. */
function brief(value: unknown): string {
  if (typeof value === 'string') return short(value);
  if (value === undefined || value === null) return '';
  return short(JSON.stringify(value).slice(0, most * 2));
}

/** A record's summary, in a line. */
export function aboutRecord({ event }: LogRecord): string {
  switch (event.type) {
    case 'RUN_FINISHED':
      return text(fields(event['outcome'])['type']);
    case 'RUN_ERROR':
      return [text(event['code']), text(event['message'])].filter(Boolean).join(' · ');
    case 'STATE_DELTA':
      return list(event['delta']).map((each) => `${text(fields(each)['op'])} ${text(fields(each)['path'])}`).slice(0, 5).join(', ');
    case 'STATE_SNAPSHOT':
      return brief(event['snapshot']);
    case 'MESSAGES_SNAPSHOT':
      return `${list(event['messages']).length} messages`;
    case 'CUSTOM':
      return `${text(event['name'])} ${brief(event['value'])}`;
    case 'TOOL_CALL_START':
      return text(event['toolCallName']);
    case 'TOOL_CALL_RESULT':
      return brief(event['content']);
    default:
      return brief(event['delta'] ?? event['content'] ?? event['stepName'] ?? event['name'] ?? event['activityType']);
  }
}

/** An entry's summary, in a line. */
export function aboutEntry(log: Log, entry: Entry): string {
  if (entry.text !== '') return short(entry.text);
  const last = log.at(entry.records.at(-1) ?? 0);
  return last === undefined ? '' : entry.kind === 'notice' || entry.kind === 'takeover' ? brief(last.event['value']) : entry.kind === 'snapshot' ? '' : aboutRecord(last);
}

/** The time of a record, or of the last one before it that says one. */
export function timeAt(log: Log, index: number): number | undefined {
  for (let i = index; i >= 0 && i > index - 5000; i--) {
    const at = log.at(i)?.at;
    if (at !== undefined) return at;
  }
  return undefined;
}

/** How long after what was before it a record was; undefined if the log does not say. */
export function sinceBefore(log: Log, index: number): number | undefined {
  const at = log.at(index)?.at;
  const before = index > 0 ? timeAt(log, index - 1) : undefined;
  return at === undefined || before === undefined ? undefined : at - before;
}

/** How a record is named in an address: by its cursor; what has none, by its place. */
export const refOf = (log: Log, index: number): string => log.at(index)?.cursor || `@${index}`;

/** The index of a record that an address names; -1 if the log does not have it. */
export function indexOf(log: Log, ref: string | undefined): number {
  if (ref === undefined || ref === '') return -1;
  if (ref.startsWith('@')) return log.at(Number(ref.slice(1))) === undefined ? -1 : Number(ref.slice(1));
  const wanted = Number.parseInt(ref, 10);
  const index = log.positionOf(wanted) - 1;
  if (log.at(index)?.number === wanted) return index;
  // A text in an archived log is one record, with the number of its last one.
  return wanted > 0 && wanted >= firstNumber(log) && log.at(index + 1) !== undefined ? index + 1 : -1;
}

/** The number of the oldest record that is loaded; 0 if there is none. */
export function firstNumber(log: Log): number {
  for (let i = 0; i < log.length; i++) {
    const { number } = log.at(i) as LogRecord;
    if (number !== 0) return number;
  }
  return 0;
}
