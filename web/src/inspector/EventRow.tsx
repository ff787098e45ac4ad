// One row in the list of records.
import { memo } from 'react';
import type { EntryKind } from '../log/group.ts';
import { kindOf } from '../log/group.ts';
import type { Log, LogRecord } from '../log/record.ts';
import { ChevronRightIcon } from '../ui/icons.tsx';
import type { Tone } from '../ui/StatusDot.tsx';
import { duration, exactTime, plural } from '../ui/time.ts';
import { aboutEntry, aboutRecord, sinceBefore, type EventRow } from './rows.ts';

/** The colour of a family. Its name is always beside it. */
export const tones: Readonly<Record<EntryKind, Tone>> = {
  run: 'neutral', text: 'good', reasoning: 'think', call: 'info', state: 'wait', snapshot: 'neutral', activity: 'info', step: 'neutral', agent: 'think', notice: 'neutral', takeover: 'bad', other: 'neutral',
};

const kindNames: Partial<Record<EntryKind, string>> = { call: 'tool', notice: 'notice', agent: 'subagent', activity: 'activity', step: 'step', reasoning: 'reasoning', takeover: 'takeover' };

function Fold({ open, label, onToggle }: { open: boolean; label: string; onToggle: () => void }) {
  return (
    <button type="button" className="inspector-fold" aria-expanded={open} aria-label={label} tabIndex={-1} onClick={(e) => { e.stopPropagation(); onToggle(); }}>
      <ChevronRightIcon />
    </button>
  );
}

const numbers = (log: Log, records: readonly number[]): string => {
  const [first, last] = [log.at(records[0] ?? 0)?.number ?? 0, log.at(records.at(-1) ?? 0)?.number ?? 0];
  if (first === 0) return '–';
  return first === last ? `${first}` : `${first}–${last}`;
};

const took = (at: number | undefined, end: number | undefined): string => (at === undefined || end === undefined || end <= at ? '' : duration(end - at));

function RecordRow({ log, index, inside }: { log: Log; index: number; inside: boolean }) {
  const record = log.at(index) as LogRecord;
  const since = sinceBefore(log, index);
  return (
    <div className="inspector-row" data-inside={inside || undefined}>
      <span className="inspector-number num">{record.number || '–'}</span>
      <span className="inspector-kind" data-tone={tones[kindOf(record)]} aria-hidden="true" />
      <span className="inspector-type">{record.event.type}</span>
      <span className="inspector-about truncate">{aboutRecord(record)}</span>
      <span className="inspector-time num" title={record.at === undefined ? undefined : exactTime(record.at)}>{since === undefined ? '' : `+${duration(since)}`}</span>
    </div>
  );
}

function EntryRow({ log, row, onToggle }: { log: Log; row: EventRow & { kind: 'entry' }; onToggle: (id: string) => void }) {
  const { entry, open, found } = row;
  const many = entry.records.length > 1;
  const about = aboutEntry(log, entry);
  const since = many ? undefined : sinceBefore(log, entry.records[0] ?? 0);
  return (
    <div className="inspector-row">
      <span className="inspector-number num">{numbers(log, entry.records)}</span>
      {many ? <Fold open={open} label={`${entry.label}, ${plural(entry.records.length, 'record')}`} onToggle={() => onToggle(row.id)} /> : <span className="inspector-fold" />}
      <span className="inspector-kind" data-tone={tones[entry.kind]} aria-hidden="true" />
      <span className="inspector-label truncate">{kindNames[entry.kind] && <span className="inspector-family">{kindNames[entry.kind]} </span>}{entry.kind === 'reasoning' ? '' : entry.label}</span>
      <span className="inspector-about truncate">{about}</span>
      {many && <span className="inspector-count num" title={entry.deltas > 0 ? `${plural(entry.records.length, 'record')}, ${entry.deltas} of them pieces` : plural(entry.records.length, 'record')}>{found < entry.records.length ? `${found} of ${entry.records.length}` : entry.records.length}</span>}
      <span className="inspector-time num" title={entry.at === undefined ? undefined : exactTime(entry.at)}>{many ? took(entry.at, entry.end) : since === undefined ? '' : `+${duration(since)}`}</span>
    </div>
  );
}

export interface EventRowProps {
  log: Log;
  row: EventRow;
  /** It was after what is looked at. */
  later: boolean;
  /** A look ends with it. */
  here: boolean;
  onToggle: (id: string) => void;
}

export const EventRowView = memo(function EventRowView({ log, row, later, here, onToggle }: EventRowProps) {
  if (row.kind === 'record') return <div className="inspector-when" data-later={later || undefined} data-here={here || undefined}><RecordRow log={log} index={row.index} inside={row.inside} /></div>;
  if (row.kind === 'entry') return <div className="inspector-when" data-later={later || undefined} data-here={here || undefined}><EntryRow log={log} row={row} onToggle={onToggle} /></div>;
  const { count, at, end } = row.kind === 'run' ? row.run : row.iteration;
  const name = row.kind === 'run' ? `Run ${row.run.runId}` : `Iteration ${row.iteration.number}`;
  return (
    <div className="inspector-row" data-heading={row.kind} onDoubleClick={(e) => e.stopPropagation()} onClick={() => onToggle(row.id)}>
      <Fold open={row.open} label={name} onToggle={() => onToggle(row.id)} />
      <span className="inspector-heading truncate" title={name}>{row.kind === 'run' ? <>Run <span className="mono">{row.run.runId}</span></> : name}</span>
      <span className="grow" />
      <span className="inspector-count num">{plural(count, 'record')}</span>
      <span className="inspector-time num" title={at === undefined ? undefined : exactTime(at)}>{took(at, end)}</span>
    </div>
  );
});
