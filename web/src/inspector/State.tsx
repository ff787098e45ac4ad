// The shared state at any record, and what each record has changed in it; and the states of
// middleware, which checkpoints have.
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { CheckpointDetail } from '../api/types.ts';
import { useCommands, usePlaceLink } from '../app/context.tsx';
import { useQueries, useThreadId } from '../app/data.tsx';
import { useHistory } from '../durable/History.tsx';
import { useLook } from '../durable/look.ts';
import { numberOf } from '../durable/words.ts';
import { diff, pointer, stateRecords } from '../log/changes.ts';
import { useLog } from '../log/hooks.tsx';
import { reduce } from '../log/reduce.ts';
import type { Log } from '../log/record.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { JsonDiff } from '../ui/Diff.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { ChevronLeftIcon, ChevronRightIcon } from '../ui/icons.tsx';
import { pretty } from '../ui/json.ts';
import { JsonTree } from '../ui/JsonTree.tsx';
import { Segments } from '../ui/Segments.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { exactTime, plural } from '../ui/time.ts';
import { usePosition } from './position.ts';
import { refOf, timeAt } from './rows.ts';

type Shown = 'tree' | 'changes' | 'raw';
type Of = 'shared' | 'middleware';

/** The last record about the state among so many, as an index in the list of them; -1 if there is none. */
export const stepAt = (steps: readonly number[], position: number): number => steps.findLastIndex((index) => index < position);

function Steps({ log, steps, at, now, go }: { log: Log; steps: readonly number[]; at: number; now: boolean; go: (position: number | undefined) => void }) {
  const link = usePlaceLink();
  const index = steps[at];
  const record = index === undefined ? undefined : log.at(index);
  const time = index === undefined || record === undefined || record.number === 0 ? undefined : timeAt(log, index);
  return (
    <div className="inspector-bar inspector-ready">
      <IconButton size="small" label="Change before" disabled={at <= 0} onClick={() => go((steps[at - 1] ?? 0) + 1)}><ChevronLeftIcon /></IconButton>
      <IconButton size="small" label="Next change" disabled={at + 1 >= steps.length} onClick={() => go((steps[at + 1] ?? 0) + 1)}><ChevronRightIcon /></IconButton>
      <span className="inspector-steps num truncate">
        {record === undefined || index === undefined ? 'Before the first change' : <>Change {at + 1} of {steps.length}, {record.number > 0 ? <a href={link({ tab: 'events', run: record.runId || undefined, more: { record: refOf(log, index) } })}>record #{record.number}</a> : 'what the thread has where its log does not say it'}</>}
        {time !== undefined && <span className="faint"> · {exactTime(time)}</span>}
      </span>
      {!now && <Button size="small" onClick={() => go(undefined)}>Now</Button>}
    </div>
  );
}

/** The state at a position, with what its last change has changed. */
function Shared({ log, position, steps, at, shown }: { log: Log; position: number; steps: readonly number[]; at: number; shown: Shown }) {
  const { state } = useMemo(() => reduce(log, position), [log, position]);
  const index = steps[at];
  const before = useMemo(() => (index === undefined ? undefined : reduce(log, index).state), [log, index]);
  const changed = useMemo(() => new Set(diff(before ?? {}, state ?? {}).map((change) => pointer(change.path))), [before, state]);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.querySelector('.json-marked')?.scrollIntoView({ block: 'nearest' });
  }, [index, shown]);
  if (shown === 'changes') return <JsonDiff before={before ?? {}} after={state ?? {}} label="Changes of the record" />;
  if (shown === 'raw') return <pre className="inspector-raw" tabIndex={0} role="region" aria-label="Raw JSON">{pretty(state)}</pre>;
  return <div ref={place}><JsonTree value={state} label="Shared state" depth={4} marked={(path) => path !== '' && changed.has(path)} /></div>;
}

const statesOf = (detail: CheckpointDetail | undefined): Record<string, unknown> => ({ ...detail?.middlewareState?.states, ...detail?.middlewareState?.newerStates });

/** The states of middleware: the log does not say it, checkpoints do. */
function Middleware({ log, position, shown }: { log: Log; position: number; shown: Shown }) {
  const thread = useThreadId();
  const { list, at } = useHistory();
  const time = position >= log.length ? Infinity : (timeAt(log, position - 1) ?? Infinity);
  const place = at === undefined ? list.findIndex((each) => Date.parse(each.createdAt) <= time) : list.findIndex((each) => each.id === at);
  const [chosen, before] = [list[place], list[place + 1]];
  const queries = useQueries();
  const now = useQuery({ ...queries.checkpoint(thread, chosen?.id ?? ''), enabled: chosen !== undefined, staleTime: Infinity });
  const then = useQuery({ ...queries.checkpoint(thread, before?.id ?? ''), enabled: before !== undefined && shown !== 'raw', staleTime: Infinity });
  const changed = useMemo(() => new Set(then.data ? diff(statesOf(then.data), statesOf(now.data)).map((change) => pointer(change.path)) : []), [then.data, now.data]);
  if (chosen === undefined) return <p className="soft">Middleware states are in checkpoints, and there is none at this place.</p>;
  if (now.error) return <ErrorCard title="The checkpoint cannot be read" error={failureOf(now.error)} onRetry={() => void now.refetch()} />;
  if (!now.data) return <Skeleton lines={4} />;
  const states = statesOf(now.data);
  const names = Object.keys(states);
  if (names.length === 0) return <p className="soft">No middleware of this agent keeps a state.</p>;
  return (
    <>
      <p className="faint small num inspector-note">{plural(names.length, 'state')} at checkpoint {numberOf(chosen.id)}, {exactTime(Date.parse(chosen.createdAt))}</p>
      {shown === 'changes' && (then.data ? <JsonDiff before={statesOf(then.data)} after={states} label="Changes since the checkpoint before" /> : <p className="soft">There is no checkpoint before it.</p>)}
      {shown === 'raw' && <pre className="inspector-raw" tabIndex={0} role="region" aria-label="Raw JSON">{pretty(states)}</pre>}
      {shown === 'tree' && <JsonTree value={states} label="Middleware states" depth={3} marked={(path) => path !== '' && changed.has(path)} />}
    </>
  );
}

export function State() {
  const log = useDeferredValue(useLog());
  const { position, now, go } = usePosition(log);
  const steps = useMemo(() => stateRecords(log), [log]);
  const at = stepAt(steps, position);
  const [shown, setShown] = useState<Shown>('tree');
  const [of, setOf] = useState<Of>('shared');
  useCommands([
    { id: 'state.before', title: 'State: change before', group: 'Inspector', when: () => at > 0, run: () => go((steps[at - 1] ?? 0) + 1) },
    { id: 'state.next', title: 'State: next change', group: 'Inspector', when: () => at + 1 < steps.length, run: () => go((steps[at + 1] ?? 0) + 1) },
  ]);
  const look = useLook();
  const checkpoint = look?.kind === 'checkpoint' ? look.view : undefined;
  const known = useMemo(() => reduce(log, position).state !== undefined, [log, position]);
  return (
    <div className="inspector-events">
      <Steps log={log} steps={steps} at={at} now={now} go={go} />
      <div className="inspector-bar">
        <Segments label="Whose state" value={of} options={[['shared', 'Shared'], ['middleware', 'Middleware']]} onChange={setOf} />
        <span className="grow" />
        <Segments label="How it is shown" value={shown} options={[['tree', 'Tree'], ['changes', 'Changes'], ['raw', 'Raw']]} onChange={setShown} />
      </div>
      {of === 'shared' && !known && !checkpoint && steps.length === 0
        ? <EmptyState title="No shared state">An agent and its frontend share a JSON value. When a tool or a client changes it, it is shown here, with what each record has changed.</EmptyState>
        : (
          <div className="inspector-scroll">
            {of === 'shared' && checkpoint && <JsonTree value={checkpoint.state ?? null} label="Shared state at the checkpoint" depth={4} />}
            {of === 'shared' ? !checkpoint && <Shared log={log} position={position} steps={steps} at={at} shown={shown} /> : <Middleware log={log} position={position} shown={shown} />}
          </div>
        )}
    </div>
  );
}
