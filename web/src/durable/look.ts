// The place that one looks at: a thread as it is, or as it was at a checkpoint or after a record. The
// address says which, so that a look has a link and the way back is the browser's.
import { useQuery, useInfiniteQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef } from 'react';
import type { CheckpointDetail, CheckpointList, Checkpoint } from '../api/types.ts';
import { usePlace, useStudio } from '../app/context.tsx';
import { useStore } from '../app/store.ts';
import { useQueries } from '../app/data.tsx';
import { useLog } from '../log/hooks.tsx';
import { Log, numberOf, record } from '../log/record.ts';
import { reduce } from '../log/reduce.ts';
import type { View } from '../log/view.ts';
import { graphOf, type Graph } from './graph.ts';

/** The name of the checkpoint in an address. */
const name = 'checkpoint';

/** The thread as it was at a checkpoint, as what a log would show that says just this. */
export function viewOf(detail: CheckpointDetail): View {
  const { runId, threadId, messages, state, status, interrupts = [] } = detail;
  const events: unknown[] = [
    { type: 'MESSAGES_SNAPSHOT', messages },
    { type: 'STATE_SNAPSHOT', snapshot: state },
  ];
  if (status === 'interrupted') {
    events.unshift({ type: 'RUN_STARTED', threadId, runId });
    events.push({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'interrupt', interrupts } });
  }
  return reduce(Log.of(events.flatMap((event) => record(event, '', runId) ?? [])));
}

/** A look at the past. */
export interface Look {
  readonly kind: 'checkpoint' | 'record';
  /** The checkpoint's id, or the record's cursor. */
  readonly id: string;
  /** The thread as it was; undefined while it is being read. */
  readonly view: View | undefined;
  /** Of a checkpoint, what it holds. */
  readonly detail?: CheckpointDetail;
  /** Why it cannot be shown. */
  readonly error: unknown;
}

/** Which checkpoint the address says, if it says one. */
export const useCheckpointId = (): string | undefined => usePlace().more?.[name];

/** The thread as the address says that it is looked at; undefined for now. */
export function useLook(): Look | undefined {
  const place = usePlace();
  const id = useCheckpointId();
  const log = useLog();
  const at = place.at;
  const { data, error } = useQuery({ ...useQueries().checkpoint(place.thread ?? '', id ?? ''), enabled: place.thread !== undefined && id !== undefined, staleTime: Infinity });
  const then = useMemo(() => data && viewOf(data), [data]);
  const playing = useStore(useStudio().playback);
  const number = at === undefined ? 0 : numberOf(at);
  const past = useMemo(() => (playing !== undefined ? reduce(log, playing) : number === 0 ? undefined : reduce(log, log.positionOf(number))), [log, number, playing]);
  const played = playing === undefined ? undefined : (log.at(playing - 1)?.cursor ?? '');
  return useMemo<Look | undefined>(() => {
    if (place.thread === undefined) return undefined;
    if (played !== undefined && past) return { kind: 'record', id: played, view: past, error: null };
    if (id !== undefined) return { kind: 'checkpoint', id, view: then, ...(data && { detail: data }), error };
    return past && at !== undefined ? { kind: 'record', id: at, view: past, error: null } : undefined;
  }, [place.thread, id, then, data, error, past, at, played]);
}

/** Goes to a checkpoint, or with undefined back to now. Stepping on leaves no trail in the browser's history. */
export function useLookAt(): (id: string | undefined, how?: { replace?: boolean }) => void {
  const { router, playback } = useStudio();
  return useCallback((id, how) => {
    playback.set(undefined);
    const place = router.get();
    const { [name]: before, ...more } = place.more ?? {};
    const to = { ...more, ...(id !== undefined && { [name]: id }) };
    router.change({ at: undefined, more: Object.keys(to).length > 0 ? to : undefined }, { replace: how?.replace ?? (before !== undefined && id !== undefined) });
  }, [router, playback]);
}

/** The part of an address that shows a checkpoint. */
export const lookPart = (id: string): { at: undefined; more: Record<string, string> } => ({ at: undefined, more: { [name]: id } });

export interface CheckpointsRead {
  readonly list: readonly Checkpoint[];
  readonly graph: Graph;
  readonly error: unknown;
  readonly loading: boolean;
  readonly older: (() => void) | undefined;
}

/** How many checkpoints are read at once: as many as are kept by default. */
const page = 100;

const pagesOf = (data: { pages: CheckpointList[] } | undefined): Checkpoint[] => data?.pages.flatMap(({ checkpoints }) => checkpoints) ?? [];

/** How often checkpoints are asked for while a run takes them, in milliseconds. */
const whileRunning = 1500;

/** The checkpoints of a thread. */
export function useCheckpoints(thread: string | undefined, running: boolean): CheckpointsRead {
  const options = useQueries().checkpoints(thread ?? '', page);
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({ ...options, enabled: thread !== undefined && thread !== '', ...(running && { refetchInterval: whileRunning }) });
  // A run that has begun or ended has taken one.
  const before = useRef(running);
  useEffect(() => {
    if (before.current !== running && thread) void refetch();
    before.current = running;
  }, [running, thread, refetch]);
  return useMemo(() => {
    const list = pagesOf(data);
    return { list, graph: graphOf(list), error, loading: isPending, older: hasNextPage ? () => void fetchNextPage() : undefined };
  }, [data, error, isPending, hasNextPage, fetchNextPage]);
}
