// The checkpoints of a thread in the inspector: all of them with their branches, what one of
// them holds, and the threads that were forked.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import type { Checkpoint, CheckpointDetail, RunInfo } from '../api/types.ts';
import { usePlaceLink } from '../app/context.tsx';
import { useQueries, useThreadId } from '../app/data.tsx';
import { useView } from '../log/hooks.tsx';
import type { View } from '../log/view.ts';
import { Badge } from '../ui/Badge.tsx';
import { Button } from '../ui/Button.tsx';
import { JsonDiff } from '../ui/Diff.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { BranchIcon, EditIcon, EyeIcon, HistoryIcon, PinIcon, RewindIcon } from '../ui/icons.tsx';
import { JsonTree } from '../ui/JsonTree.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { Time } from '../ui/Time.tsx';
import './Checkpoints.css';
import { isLeft, useHistory, whereOf } from './History.tsx';
import { lookPart } from './look.ts';
import type { Dot, Graph } from './graph.ts';
import { ProcessTag } from './Process.tsx';
import { kindOf } from './Strip.tsx';
import { ThreadTree } from './ThreadTree.tsx';
import { argumentsText } from './arguments.ts';
import { messages, numberOf, placeOf, titleOf } from './words.ts';

const high = 44;
const wide = 14;

const stateOf = (view: View): unknown => view.state;

/** The process that took a checkpoint: the last that had the run by then. */
export function processOf(checkpoint: Checkpoint, runs: readonly RunInfo[]): string {
  const run = runs.find(({ id }) => id === checkpoint.runId);
  return run?.processes?.findLast(({ since }) => Date.parse(since) <= Date.parse(checkpoint.createdAt))?.process ?? run?.processes?.[0]?.process ?? '';
}

const xOf = (lane: number): number => 18 + Math.min(lane, 5) * wide;

function Lines({ graph }: { graph: Graph }) {
  const { dots } = graph;
  const yOf = (dot: Dot) => (dots.length - 1 - dot.index) * high + high / 2;
  return (
    <svg className="durable-list-lines" width="100" height={dots.length * high} aria-hidden="true">
      {dots.map((dot) => {
        const parent = dots[dot.parent];
        if (!parent) return null;
        const [x, y, px, py] = [xOf(dot.lane), yOf(dot), xOf(parent.lane), yOf(parent)];
        const path = x === px ? `V${py}` : `V${py - high / 2}C${x} ${py - 8} ${px} ${py - 10} ${px} ${py}`;
        return <path key={dot.index} className={dot.current ? undefined : 'left'} d={`M${x} ${y}${path}`} />;
      })}
    </svg>
  );
}

function Row({ dot, lanes, at, tabbable, href, process, onLook }: { dot: Dot; lanes: number; at: boolean; tabbable: boolean; href: string; process: string; onLook: () => void }) {
  const { checkpoint } = dot;
  const kind = kindOf(checkpoint);
  return (
    <a
      className="durable-row" href={href} style={{ paddingLeft: xOf(Math.min(lanes, 6) - 1) + 18 }} data-left={dot.current ? undefined : true} aria-current={at ? 'step' : undefined} tabIndex={tabbable ? 0 : -1}
      onClick={(e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey) return;
        e.preventDefault();
        onLook();
      }}
    >
      <span className="durable-row-dot" style={{ left: xOf(dot.lane) }}><span className="durable-mark" data-kind={kind} /></span>
      <span className="truncate">
        <span className="durable-row-title">{titleOf(checkpoint)}</span>
        {!dot.current && <span className="sr">, left by going back</span>}
        <br />
        <span className="durable-row-about num">#{numberOf(checkpoint.id)}{checkpoint.messageCount !== undefined && ` · ${messages(checkpoint.messageCount)}`}</span>
      </span>
      <span className="durable-row-end"><Time at={checkpoint.createdAt} />{process && <ProcessTag name={process} />}</span>
    </a>
  );
}

/** The list, newest first, with the lines between checkpoints. */
export function CheckpointList({ graph, at, runs, hrefOf, onLook, older }: { graph: Graph; at: string | undefined; runs: readonly RunInfo[]; hrefOf: (id: string) => string; onLook: (id: string) => void; older?: () => void }) {
  const list = useRef<HTMLDivElement>(null);
  const rows = [...graph.dots].reverse();
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  const move = (e: KeyboardEvent) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>('a') ?? [])];
    const index = links.indexOf(e.target as HTMLElement);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: links.length - 1 }[e.key];
    if (index < 0 || to === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, to))]?.focus();
  };
  const first = rows.findIndex(({ checkpoint }) => checkpoint.id === at);
  return (
    <div className="durable-list" ref={list} onKeyDown={move}>
      <ol className="durable-list-rows" aria-label="Checkpoints, newest first">
        {rows.map((dot, i) => (
          <li key={dot.checkpoint.id}>
            <Row dot={dot} lanes={graph.lanes} at={dot.checkpoint.id === at} tabbable={i === Math.max(0, first)} href={hrefOf(dot.checkpoint.id)} process={processOf(dot.checkpoint, runs)} onLook={() => onLook(dot.checkpoint.id)} />
          </li>
        ))}
      </ol>
      <Lines graph={graph} />
      {older && <div className="row durable-older"><Button size="small" kind="quiet" onClick={older}>Load older checkpoints</Button></div>}
    </div>
  );
}

type Compared = 'state' | 'before' | 'now';

/** A checkpoint's state, against the one before and against now. */
export function StateAt({ detail, before, now }: { detail: CheckpointDetail; before: unknown; now: unknown }) {
  const [shown, setShown] = useState<Compared>('state');
  const tabs: [Compared, string, boolean][] = [['state', 'State', true], ['before', 'Since the one before', before !== undefined], ['now', 'Until now', true]];
  return (
    <section className="durable-section" aria-label="Shared state">
      <div className="durable-segments" role="group" aria-label="Part of the state">
        {tabs.filter(([, , there]) => there).map(([value, name]) => <button key={value} type="button" aria-pressed={shown === value} onClick={() => setShown(value)}>{name}</button>)}
      </div>
      {shown === 'state' && (detail.state === null || detail.state === undefined ? <p className="soft">There was no shared state.</p> : <JsonTree value={detail.state} label="Shared state" depth={2} />)}
      {shown === 'before' && <JsonDiff before={before} after={detail.state} label="Changes since the checkpoint before" />}
      {shown === 'now' && <JsonDiff before={detail.state} after={now} label="Changes until now" />}
    </section>
  );
}

function Pending({ detail }: { detail: CheckpointDetail }) {
  const { pendingWrites = [], openToolCalls = [] } = detail;
  if (pendingWrites.length === 0 && openToolCalls.length === 0) return null;
  return (
    <section className="durable-section">
      <h3>Not in it yet</h3>
      <ul className="durable-pending">
        {pendingWrites.map((write) => <li key={write.toolCallId}><code>{write.toolName}</code><Badge tone="good" title="Its result is saved ahead of the next checkpoint, and it does not run again">result saved</Badge><span className="soft truncate">{argumentsText(write.result)}</span></li>)}
        {openToolCalls.filter(({ toolCallId }) => !pendingWrites.some((w) => w.toolCallId === toolCallId)).map((call) => <li key={call.toolCallId}><code>{call.toolName}</code><Badge tone="wait">{call.interruptId ? 'waits for an answer' : 'open'}</Badge></li>)}
      </ul>
    </section>
  );
}

function Facts({ checkpoint, process }: { checkpoint: Checkpoint; process: string }) {
  const { metadata } = checkpoint;
  return (
    <p className="durable-detail-facts num">
      <span>checkpoint {numberOf(checkpoint.id)}</span>
      {placeOf(checkpoint) && <span>{placeOf(checkpoint)}</span>}
      <span>{messages(checkpoint.messageCount)}</span>
      <span><Time at={checkpoint.createdAt} live={false} /></span>
      {process && <span>by <ProcessTag name={process} /></span>}
      {metadata.parentThreadId && <span>from another thread</span>}
    </p>
  );
}

/** The content of one checkpoint, and the actions from it. */
function Detail({ thread, checkpoint, runs }: { thread: string; checkpoint: Checkpoint; runs: readonly RunInfo[] }) {
  const { at, graph, look, fork, rewind, edit, readOnly, running } = useHistory();
  const queries = useQueries();
  const { data, error, refetch } = useQuery(queries.checkpoint(thread, checkpoint.id));
  const parent = checkpoint.metadata.parentThreadId ? undefined : checkpoint.metadata.parentCheckpointId;
  const before = useQuery({ ...queries.checkpoint(thread, parent ?? ''), enabled: parent !== undefined, retry: false });
  const now = useView(stateOf);
  const where = whereOf(graph, checkpoint);
  const actions: ReactNode = (
    <div className="row wrap">
      {at !== checkpoint.id && <Button size="small" icon={<EyeIcon />} onClick={() => look(checkpoint.id)}>Look at it</Button>}
      {!readOnly && <Button size="small" icon={<BranchIcon />} onClick={() => fork(checkpoint)}>Fork from here</Button>}
      {!readOnly && <Button size="small" icon={<RewindIcon />} disabled={running} onClick={() => rewind(checkpoint)}>Rewind…</Button>}
      {!readOnly && data && <Button size="small" icon={<EditIcon />} onClick={() => edit({ state: data.state, where, checkpoint })}>Edit the state, and fork…</Button>}
    </div>
  );
  return (
    <div className="durable-detail">
      <h2 className="durable-detail-title">{titleOf(checkpoint)}<span className="faint small num">{isLeft(graph, checkpoint) ? 'left by going back' : where}</span></h2>
      <Facts checkpoint={checkpoint} process={processOf(checkpoint, runs)} />
      <div className="durable-section">{actions}</div>
      {error !== null && <div className="durable-section"><ErrorCard title="This checkpoint cannot be read" error={failureOf(error)} onRetry={() => void refetch()} /></div>}
      {!data && !error && <div className="durable-section"><Skeleton lines={5} /></div>}
      {data?.message && <p className="durable-section soft">{data.message}</p>}
      {data && <StateAt key={checkpoint.id} detail={data} before={before.data?.state} now={now} />}
      {data && <Pending detail={data} />}
      <section className="durable-section"><h3>Forks</h3><ThreadTree thread={thread} /></section>
    </div>
  );
}

/** The tab of the inspector. */
export function Checkpoints() {
  const thread = useThreadId();
  const { list, graph, at, error, loading, older, look, mark, readOnly, running } = useHistory();
  const { data } = useInfiniteQuery({ ...useQueries().runs(thread), enabled: thread !== '' });
  const runs = data?.pages.flatMap((page) => page.runs) ?? [];
  const link = usePlaceLink();
  if (error && list.length === 0) {
    const failure = failureOf(error);
    if (failure.code === 'history_not_kept') return <EmptyState icon={<HistoryIcon />} title="This server keeps no history">It was started with --retention=latest, so a thread has only its newest checkpoint. With --retention=full:100 you can look at each one, and go back.</EmptyState>;
    if (failure.code !== 'not_found') return <div className="durable-detail"><ErrorCard title="The checkpoints cannot be shown" error={failure} /></div>;
  }
  if (loading) return <div className="durable-detail"><Skeleton lines={6} /></div>;
  const chosen = list.find(({ id }) => id === at) ?? list[0];
  if (!chosen) return <EmptyState icon={<HistoryIcon />} title="No checkpoints yet">One is taken when a run is accepted, after each iteration, and when the run ends. You can look at each, fork from it, and go back to it.</EmptyState>;
  return (
    <div className="durable-checkpoints">
      <div className="durable-checkpoints-bar row">
        <span className="grow soft small num">{list.length}{older && '+'} {list.length === 1 ? 'checkpoint' : 'checkpoints'}</span>
        {!readOnly && <Button size="small" kind="quiet" icon={<PinIcon />} disabled={running || at !== undefined} onClick={mark}>Mark this place…</Button>}
      </div>
      <CheckpointList graph={graph} at={at ?? chosen.id} runs={runs} hrefOf={(id) => link(lookPart(id))} onLook={look} older={older} />
      <Detail key={chosen.id} thread={thread} checkpoint={chosen} runs={runs} />
    </div>
  );
}
