// Which process ran what.
import { createContext, useContext } from 'react';
import type { RunInfo, RunProcess } from '../api/types.ts';
import { duration, exactTime } from '../ui/time.ts';
import { hueOf, hues, shortName } from './hue.ts';
import './Process.css';

/** The processes that are known, in the order in which they came: neighbours have different colours. */
export const KnownProcesses = createContext<readonly string[]>([]);

/** The colour of a process. */
export function useHue(): (name: string) => number {
  const known = useContext(KnownProcesses);
  return (name) => (known.includes(name) ? known.indexOf(name) % hues : hueOf(name));
}

/** The name of a process, with its colour. */
export function ProcessTag({ name }: { name: string }) {
  const hue = useHue();
  return (
    <span className="durable-process" data-hue={hue(name)} title={`Process ${name}`}>
      <span className="durable-process-mark" aria-hidden="true" />
      <span className="truncate">{shortName(name)}</span>
    </span>
  );
}

/** A run's facts about its processes. */
type ProcessSpan = Pick<RunProcess, 'process' | 'epoch' | 'since'>;

interface Segment extends ProcessSpan {
  readonly from: number;
  readonly to: number;
}

/** The times of a run's processes: each until the next one began. */
export function segmentsOf(processes: readonly ProcessSpan[], end: number): Segment[] {
  return processes.map((each, i) => {
    const from = Date.parse(each.since);
    const next = processes[i + 1];
    return { ...each, from, to: Math.max(from, next ? Date.parse(next.since) : end) };
  });
}

/** Which process ran a run, and from when to when; with one process, its name. */
export function ProcessLanes({ run, now }: { run: Pick<RunInfo, 'startedAt' | 'endedAt'> & { readonly processes?: readonly ProcessSpan[] }; now: number }) {
  const { processes = [] } = run;
  const hue = useHue();
  if (processes.length === 0) return null;
  if (processes.length === 1) return <ProcessTag name={processes[0]?.process ?? ''} />;
  const start = Date.parse(run.startedAt);
  const end = Math.max(start + 1, run.endedAt ? Date.parse(run.endedAt) : now);
  const segments = segmentsOf(processes, end);
  const percent = (at: number) => Math.min(100, Math.max(0, ((at - start) / (end - start)) * 100));
  return (
    <ol className="durable-lanes" aria-label="Processes that ran it">
      {segments.map((segment, i) => (
        <li key={segment.epoch} className="durable-lane" data-hue={hue(segment.process)}>
          <ProcessTag name={segment.process} />
          <span className="durable-lane-track" aria-hidden="true">
            <span className="durable-lane-bar" style={{ left: `${percent(segment.from)}%`, width: `${Math.max(1, percent(segment.to) - percent(segment.from))}%` }} />
          </span>
          <span className="durable-lane-time num" title={`Since ${exactTime(segment.from)}`}>{duration(segment.to - segment.from)}</span>
          <span className="sr">{i > 0 ? 'took over' : 'began'} at {exactTime(segment.from)}</span>
        </li>
      ))}
    </ol>
  );
}
