// The runs of a thread, and one of them whole: how it went, in time, and what it has used.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useEffect, useMemo, useRef, type ReactNode } from 'react';
import * as actions from '../api/actions.ts';
import type { Call, RunInfo } from '../api/types.ts';
import { useAnnounce, usePlace, usePlaceLink, useStudio } from '../app/context.tsx';
import { useCopyCurl, useQueries, useThreadId } from '../app/data.tsx';
import { runStandings } from '../app/LiveFooter.tsx';
import { useHistory } from '../durable/History.tsx';
import { ProcessLanes, ProcessTag } from '../durable/Process.tsx';
import { useLog, useSnapshot, useThread } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import type { RunView, Status } from '../log/view.ts';
import { waterfall, type Span } from '../log/waterfall.ts';
import { Badge } from '../ui/Badge.tsx';
import { Button, IconButton } from '../ui/Button.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { HistoryIcon, TerminalIcon } from '../ui/icons.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import type { Tone } from '../ui/StatusDot.tsx';
import { StatusDot } from '../ui/StatusDot.tsx';
import { Duration, Time, useNow } from '../ui/Time.tsx';
import { count, exactTime, plural, short } from '../ui/time.ts';
import { money, Tokens } from './Tokens.tsx';
import { Waterfall } from './Waterfall.tsx';
import './Run.css';

const runsOf = ({ view }: Snapshot): readonly RunView[] => view.runs;

const outcomes: Readonly<Record<string, Status>> = { success: 'done', interrupt: 'waiting', cancelled: 'stopped', error: 'failed' };

/** How a run stands, in a word. An answered question waits for nobody. */
export function standingOf(run: RunInfo, newest: boolean): { text: string; tone: Tone } {
  if (run.outcome === 'interrupt' && !newest) return { text: 'Asked', tone: 'neutral' };
  if (run.outcome === undefined && run.endedAt === undefined) return { text: 'Running', tone: 'active' };
  return runStandings[outcomes[run.outcome ?? ''] ?? 'idle'] ?? { text: 'Ended', tone: 'neutral' };
}

const tokens = (run: RunInfo): number => (run.usage ?? []).reduce((n, each) => n + (each.totalTokens ?? 0), 0);

/** All runs, newest first. */
function Runs({ runs, shown, more }: { runs: readonly RunInfo[]; shown: string; more?: () => void }) {
  const link = usePlaceLink();
  return (
    <div className="inspector-table-scroll inspector-runs" tabIndex={0} role="region" aria-label="Runs of the thread">
      <table className="inspector-table">
        <thead><tr><th scope="col">Run</th><th scope="col">Started</th><th scope="col" className="num">Took</th><th scope="col" className="num">Tokens</th><th scope="col">Process</th></tr></thead>
        <tbody>
          {runs.map((run, i) => {
            const { text, tone } = standingOf(run, i === 0);
            const last = run.processes?.at(-1);
            return (
              <tr key={run.id} data-shown={run.id === shown || undefined}>
                <th scope="row"><a className="inspector-run" href={link({ run: run.id })} aria-current={run.id === shown ? 'true' : undefined} title={run.id}><StatusDot tone={tone} />{text}<span className="faint mono truncate">{run.id}</span></a></th>
                <td><Time at={run.startedAt} /></td>
                <td className="num">{run.endedAt ? <Duration ms={Date.parse(run.endedAt) - Date.parse(run.startedAt)} /> : <Duration since={run.startedAt} />}</td>
                <td className="num" title={count(tokens(run))}>{tokens(run) > 0 ? short(tokens(run)) : '–'}</td>
                <td>{last ? <ProcessTag name={last.process} /> : '–'}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {more && <div className="row inspector-pages"><Button size="small" kind="quiet" onClick={more}>Older runs</Button></div>}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

/** How a run went. */
function Facts({ info, newest }: { info: RunInfo; newest: boolean }) {
  const thread = useThreadId();
  const link = usePlaceLink();
  const copyCurl = useCopyCurl();
  const now = useNow('second');
  const { text, tone } = standingOf(info, newest);
  const other = (id: string) => <a className="mono" href={link({ run: id })}>{id}</a>;
  return (
    <section className="inspector-section" aria-label="The run">
      <div className="row inspector-section-head">
        <h2 className="truncate mono" title={info.id}>{info.id}</h2><Badge tone={tone}>{text}</Badge>
        <span className="grow" />
        <IconButton size="small" label="Copy its log as curl" onClick={() => copyCurl(actions.log(thread, info.id))}><TerminalIcon /></IconButton>
      </div>
      {info.message && <p className={info.outcome === 'error' ? 'inspector-run-failed' : 'soft'}>{info.message}{info.code && <code> {info.code}</code>}</p>}
      <dl className="inspector-facts num">
        <Fact name="Agent">{info.agent}{info.revision && <span className="faint mono"> {info.revision.slice(0, 12)}</span>}</Fact>
        <Fact name="Started">{exactTime(Date.parse(info.startedAt))}</Fact>
        {info.endedAt && <Fact name="Ended">{exactTime(Date.parse(info.endedAt))}</Fact>}
        <Fact name="Took">{info.endedAt ? <Duration ms={Date.parse(info.endedAt) - Date.parse(info.startedAt)} /> : <Duration since={info.startedAt} />}</Fact>
        {info.records !== undefined && <Fact name="Records">{count(info.records)}</Fact>}
        {info.cost !== undefined && <Fact name="Cost">{money(info.cost)}</Fact>}
        {info.durability && <Fact name="Commits survive">{{ none: 'nothing', process: 'the process', machine: 'the machine', failover: 'a failover' }[info.durability]}</Fact>}
        {info.continues && <Fact name="Continues">{other(info.continues)}</Fact>}
        {info.continuedBy && <Fact name="Continued by">{other(info.continuedBy)}</Fact>}
        {info.parentRunId && <Fact name="Parent">{info.parentRunId}</Fact>}
      </dl>
      {info.processes && info.processes.length > 0 && <div className="inspector-processes"><h3 className="faint">{info.processes.length === 1 ? 'Process' : plural(info.processes.length, 'process', 'processes')}</h3><ProcessLanes run={info} now={now} /></div>}
    </section>
  );
}

const noCalls: readonly Call[] = [];

/** The waterfall of a run, as far as its log is loaded. */
function InTime({ id, started }: { id: string; started: boolean }) {
  const log = useDeferredValue(useLog());
  const store = useThread();
  const thread = useThreadId();
  const { router } = useStudio();
  const link = usePlaceLink();
  const announce = useAnnounce();
  const { list } = useHistory();
  const { data: calls } = useQuery({ ...useQueries().calls(thread, id), staleTime: 3000 });
  const times = useMemo(() => waterfall(log, id, list, calls?.calls ?? noCalls), [log, id, list, calls]);
  const more = store.get().earlier.length > 0;
  if (!times) {
    if (!started) return null;
    return (
      <section className="inspector-section" aria-label="Waterfall">
        <h2>Waterfall</h2>
        {more
          ? <p className="row wrap soft small">The log of this run is not loaded. <Button size="small" icon={<HistoryIcon />} onClick={() => { announce('Loading earlier runs'); void loadUntil(); }}>Load it</Button></p>
          : <p className="soft small">The log of this run says nothing of when things were.</p>}
      </section>
    );
  }
  async function loadUntil(): Promise<void> {
    while (store.get().log.slice().every((record) => record.runId !== id || record.number === 0)) if (!(await store.loadEarlier().catch(() => false))) return;
  }
  const refOf = (span: Span) => log.at(log.positionOf(span.record) - 1)?.cursor ?? '';
  const open = (span: Span) => {
    if (span.record > 0) router.change({ tab: 'events', run: id, more: { ...router.get().more, record: refOf(span) } });
  };
  return <Waterfall key={id} times={times} onOpen={open} about={(span) => (span.record > 0 ? <a href={link({ tab: 'events', run: id, more: { record: refOf(span) } })}>#{count(span.record)}</a> : <span className="faint">–</span>)} />;
}

export function Run() {
  const thread = useThreadId();
  const { run: wanted } = usePlace();
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(useQueries().runs(thread));
  const views = useSnapshot(runsOf);
  // A run has begun or ended, or has another process: the server knows more of it than the list says.
  const last = views.at(-1);
  const stand = last && `${last.id} ${last.status} ${last.takeovers}`;
  const before = useRef(stand);
  useEffect(() => {
    if (before.current !== undefined && before.current !== stand) void refetch();
    before.current = stand;
  }, [stand, refetch]);
  const runs = useMemo(() => data?.pages.flatMap((page) => page.runs) ?? [], [data]);
  if (error && runs.length === 0 && failureOf(error).code !== 'not_found') return <div className="inspector-pad"><ErrorCard title="The runs cannot be read" error={failureOf(error)} onRetry={() => void refetch()} /></div>;
  if (isPending) return <div className="inspector-pad"><Skeleton lines={6} /></div>;
  const info = runs.find((run) => run.id === wanted) ?? runs[0];
  if (!info) return <EmptyState title="No runs yet">Each message to the agent starts a run. How long it took, who ran it and what it used is shown here.</EmptyState>;
  return (
    <div className="inspector-run-panel inspector-ready" tabIndex={0} role="region" aria-label="Runs">
      <Runs runs={runs} shown={info.id} more={hasNextPage ? () => void fetchNextPage() : undefined} />
      <Facts info={info} newest={info === runs[0]} />
      <InTime id={info.id} started={info.records !== 0} />
      <Tokens key={info.id} info={info} run={views.find((each) => each.id === info.id)} />
    </div>
  );
}
