// The server's work now and in the last hour, by its own figures.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState, useSyncExternalStore } from 'react';
import * as actions from '../api/actions.ts';
import type { Overview as Figures } from '../api/types.ts';
import { useCommands, usePlace, usePreferences, useStudio } from '../app/context.tsx';
import { useCopyCurl, useQueries } from '../app/data.tsx';
import { formatPlace } from '../app/place.ts';
import { IconButton } from '../ui/Button.tsx';
import { TerminalIcon } from '../ui/icons.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { StatusDot, type Tone } from '../ui/StatusDot.tsx';
import { count, duration, plural } from '../ui/time.ts';
import { Duration, Time } from '../ui/Time.tsx';
import { Unread } from './Denied.tsx';
import { Plot } from './Plot.tsx';
import { figuresOf, isEmpty, minutesOf, rowsOf, valueAt, type Figure, type Value } from './series.ts';

const windows = [['10', '10 min'], ['30', '30 min'], ['60', '1 hour']] as const;

const dark = typeof window === 'undefined' ? undefined : window.matchMedia('(prefers-color-scheme: dark)');

/** Changes whenever the colours of the page do. */
function useTheme(): string {
  const [{ theme }] = usePreferences();
  const system = useSyncExternalStore((changed) => {
    dark?.addEventListener('change', changed);
    return () => dark?.removeEventListener('change', changed);
  }, () => dark?.matches ?? false);
  return `${theme} ${system}`;
}

const valueText = (figure: Figure, value: Value): string => (value === null ? '–' : figure.unit === 'duration' ? duration(value) : count(value));

const clock = (seconds: number): string => new Date(seconds * 1000).toLocaleTimeString('en', { hour12: false });

function FigureTable({ figure }: { figure: Figure }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="operate-figure-table" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>As a table</summary>
      {open && (
        <div className="operate-scroll" tabIndex={0} role="region" aria-label={`${figure.title}, as a table`}>
          <table className="operate-table">
            <thead><tr><th scope="col">Step from</th>{figure.lines.map((l) => <th key={l.name} scope="col" className="operate-number">{l.name}</th>)}</tr></thead>
            <tbody>{rowsOf(figure).map(({ time, values }) => <tr key={time}><th scope="row" className="num">{clock(time)}</th>{values.map((v, i) => <td key={i} className="operate-number num">{valueText(figure, v)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      )}
    </details>
  );
}

function FigurePanel({ figure, theme }: { figure: Figure; theme: string }) {
  const [at, setAt] = useState<number | null>(null);
  const empty = isEmpty(figure);
  const time = at === null ? undefined : figure.times[at];
  return (
    <section className="operate-figure" aria-label={figure.title}>
      <header className="operate-figure-head">
        <h3 title={figure.about}>{figure.title}</h3>
        <ul className="operate-legend">
          {figure.lines.map((l) => (
            <li key={l.name}>
              <span className="operate-swatch" data-form={l.form} style={{ color: `var(${l.colour})` }} aria-hidden="true" />
              {l.name} <b className="num">{valueText(figure, valueAt(figure, l, at))}</b>
            </li>
          ))}
        </ul>
        <span className="operate-figure-time num faint">{time !== undefined && clock(time)}</span>
      </header>
      <p className="sr">{figure.about}</p>
      {empty ? <p className="operate-none">Nothing was measured in this time.</p> : <Plot figure={figure} onPoint={setAt} theme={theme} />}
      {!empty && <FigureTable figure={figure} />}
    </section>
  );
}

function Tile({ name, value, tone, href, about }: { name: string; value: number; tone?: Tone; href?: string; about?: string }) {
  const inside = <><span className="operate-tile-name">{tone && value > 0 && <StatusDot tone={tone} />}{name}</span>{' '}<b className="operate-tile-value num">{count(value)}</b></>;
  return <li title={about}>{href && value > 0 ? <a className="operate-tile" href={href}>{inside}</a> : <div className="operate-tile">{inside}</div>}</li>;
}

function Tiles({ runs }: { runs: Figures['runs'] }) {
  return (
    <ul className="operate-tiles" aria-label="Runs since its start">
      <Tile name="Running now" value={runs.running} tone="active" href={formatPlace({ page: 'operate', section: 'threads', more: { q: 'running' } })} />
      <Tile name="Finished" value={runs.finished} tone="good" />
      <Tile name="Asked a person" value={runs.waiting} tone="wait" href={formatPlace({ page: 'operate', section: 'threads', more: { q: 'waiting' } })} about="Ended with a question; its answer goes on with another run" />
      <Tile name="Failed" value={runs.failed} tone="bad" href={formatPlace({ page: 'operate', section: 'threads', more: { q: 'failed' } })} />
      <Tile name="Cancelled" value={runs.cancelled} />
      <Tile name="Taken over" value={runs.takenOver} tone="info" about="Went on here after another process had died or shut down" />
    </ul>
  );
}

function Facts({ figures }: { figures: Figures }) {
  const others = figures.processes.filter((p) => p !== figures.process);
  return (
    <dl className="operate-facts">
      <div><dt>Version</dt><dd>{figures.version}</dd></div>
      <div><dt>Up</dt><dd title={new Date(figures.startedAt).toLocaleString('en')}><Duration since={figures.startedAt} /></dd></div>
      <div><dt>Store</dt><dd className="truncate" title={figures.store}>{figures.store}</dd></div>
      {figures.durability && <div><dt>Commits survive</dt><dd>{{ none: 'nothing', process: 'a crash of the process', machine: 'a crash of the machine', failover: 'a failover' }[figures.durability]}</dd></div>}
      <div>
        <dt>{plural(figures.processes.length || 1, 'process', 'processes')}</dt>
        <dd><ul className="operate-processes">
          <li><StatusDot tone="good" /><code>{figures.process}</code><span className="faint">this one</span></li>
          {others.map((p) => <li key={p}><StatusDot tone="good" /><code>{p}</code></li>)}
        </ul></dd>
      </div>
    </dl>
  );
}

function Errors({ errors }: { errors: Figures['errors'] }) {
  if (errors.length === 0) return <p className="soft">No run has failed since this process began.</p>;
  return (
    <div className="operate-scroll" tabIndex={0} role="region" aria-label="Errors by code">
      <table className="operate-table">
        <thead><tr><th scope="col">Code</th><th scope="col" className="operate-number">Runs</th><th scope="col">Last</th><th scope="col"><span className="sr">Threads</span></th></tr></thead>
        <tbody>
          {errors.map(({ code, count: n, lastAt }) => (
            <tr key={code}>
              <th scope="row"><code>{code}</code></th>
              <td className="operate-number num">{count(n)}</td>
              <td><Time at={lastAt} /></td>
              <td className="operate-end"><a href={formatPlace({ page: 'operate', section: 'threads', more: { q: code } })}>Its threads</a></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function WindowChoice({ minutes }: { minutes: string }) {
  const { router } = useStudio();
  return (
    <div className="operate-choice" role="group" aria-label="How far back">
      {windows.map(([value, name]) => <button key={value} type="button" aria-pressed={value === minutes} onClick={() => router.change({ more: { minutes: value } }, { replace: true })}>{name}</button>)}
    </div>
  );
}

export function Overview() {
  const { more } = usePlace();
  const queries = useQueries();
  const { data, error, isPending, isError, refetch } = useQuery(queries.overview());
  const copy = useCopyCurl();
  const theme = useTheme();
  const chosen = windows.find(([value]) => value === more?.['minutes'])?.[0];
  const minutes = chosen ?? (data ? String(minutesOf(data, windows.map(([value]) => Number(value)))) : '60');
  const figures = useMemo(() => (data ? figuresOf(data, Number(minutes)) : []), [data, minutes]);
  useCommands([{ id: 'overview.curl', title: 'Copy as curl: the overview', group: 'Operate', run: () => copy(actions.overview()) }]);
  if (isPending) return <div className="operate-body" aria-busy="true"><Skeleton lines={8} /></div>;
  if (!data) return <Unread what="The overview" error={error} onRetry={() => void refetch()} />;
  return (
    <div className="operate-body">
      <div className="operate-inner">
        {isError && <p className="operate-stale" role="status"><StatusDot tone="bad" />The server does not answer. These are its figures of <Time at={data.now} />.</p>}
        <section aria-labelledby="operate-now">
          <header className="operate-head"><h2 id="operate-now">This process</h2><span className="grow" /><IconButton size="small" label="Copy as curl" onClick={() => copy(actions.overview())}><TerminalIcon /></IconButton></header>
          <Tiles runs={data.runs} />
          <Facts figures={data} />
        </section>
        {data.runs.started === 0 && figures.every(isEmpty)
          ? <section className="operate-first"><h2>Nothing has run yet</h2><p className="soft">As soon as this process runs an agent, it plots here how many runs there are, how quickly models answer and what they use. It measures by itself; no Prometheus is needed.</p><a className="button" data-kind="primary" href={formatPlace({ page: 'thread' })}>Begin a thread</a></section>
          : (
            <section aria-labelledby="operate-figures">
              <header className="operate-head"><h2 id="operate-figures">Figures</h2><span className="grow" /><WindowChoice minutes={minutes} /></header>
              <div className="operate-figures">{figures.map((f) => <FigurePanel key={f.title} figure={f} theme={theme} />)}</div>
            </section>
          )}
        <section aria-labelledby="operate-errors"><header className="operate-head"><h2 id="operate-errors">Errors</h2></header><Errors errors={data.errors} /></section>
      </div>
    </div>
  );
}
