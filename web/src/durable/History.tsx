// The actions that a thread's past offers, wherever it is offered: the strip, the banner, the inspector.
// One provider for a conversation holds the dialogs, the keys and the commands.
import { createContext, lazy, Suspense, useContext, useMemo, useState, type ReactNode } from 'react';
import type { Checkpoint } from '../api/types.ts';
import { useCommands, usePlace } from '../app/context.tsx';
import { useThreadId } from '../app/data.tsx';
import { useSnapshot, useView } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import type { View } from '../log/view.ts';
import { neighbour, wayOf, type Graph } from './graph.ts';
import { KnownProcesses } from './Process.tsx';
import { useCheckpointId, useCheckpoints, useLookAt, type CheckpointsRead } from './look.ts';
import type { Editable } from './useEdit.tsx';
import type { Destination } from './useTravel.tsx';
import { numberOf } from './words.ts';

// The dialogs are loaded when one is first opened.
const Traveler = lazy(() => import('./useTravel.tsx').then((m) => ({ default: m.Traveler })));
const Marker = lazy(() => import('./useEdit.tsx').then((m) => ({ default: m.Marker })));
const StateEditor = lazy(() => import('./useEdit.tsx').then((m) => ({ default: m.StateEditor })));

export interface History extends CheckpointsRead {
  /** The id of the checkpoint that is looked at; undefined for now. */
  readonly at: string | undefined;
  readonly running: boolean;
  /** Only looked at: another user's. */
  readonly readOnly: boolean;
  look(id: string | undefined): void;
  /** The checkpoint before or after what is looked at; null leads to now. */
  step(by: -1 | 1): Checkpoint | null | undefined;
  rewind(checkpoint: Checkpoint): void;
  fork(checkpoint: Checkpoint): void;
  mark(): void;
  edit(editable: Editable): void;
}

const Context = createContext<History | null>(null);

export function useHistory(): History {
  const history = useContext(Context);
  if (!history) throw new Error('a component of a thread’s history is used outside of its provider');
  return history;
}

/** "step 3 of 7": where a checkpoint is on the way; one that was left by going back is not on it. */
export function whereOf(graph: Graph, checkpoint: Pick<Checkpoint, 'id'>): string {
  const way = wayOf(graph);
  const index = way.findIndex((dot) => dot.checkpoint.id === checkpoint.id);
  return index < 0 ? `checkpoint ${numberOf(checkpoint.id)}` : `step ${index + 1} of ${way.length}`;
}

/** Whether the thread went back past it, so that it is on no way to where it stands. */
export const isLeft = (graph: Graph, checkpoint: Pick<Checkpoint, 'id'>): boolean => graph.dots.some((dot) => dot.checkpoint.id === checkpoint.id && !dot.current);

const isRunning = (view: View): boolean => view.status === 'running';
/** A thread that was not begun has no checkpoints to ask for. */
const isThere = ({ thread, view }: Snapshot): boolean => thread !== undefined || view.number > 0;

/** The names of the thread's processes, in one text: a value that can be compared. */
const processesOf = (view: View): string => [...new Set([...view.items.flatMap((item) => (item.kind === 'seam' ? [item.from, item.process] : [])), ...view.runs.map((run) => run.process)])].filter(Boolean).join('\n');

const stateOf = (view: View): unknown => view.state;

type Doing = { readonly what: 'travel'; readonly to: Destination } | { readonly what: 'mark' } | { readonly what: 'edit'; readonly edit: Editable };

function Keys({ history }: { history: History }) {
  const state = useView(stateOf);
  const { at, list, running, readOnly, step, look, rewind, fork, mark, edit } = history;
  const here = list.find((checkpoint) => checkpoint.id === at);
  const go = (by: -1 | 1) => {
    const to = step(by);
    if (to !== undefined) look(to?.id);
  };
  const may = !readOnly && list.length > 0;
  useCommands([
    { id: 'history.previous', title: 'Previous checkpoint', group: 'History', keys: '[', words: 'back time travel', when: () => step(-1) !== undefined, run: () => go(-1) },
    { id: 'history.next', title: 'Next checkpoint', group: 'History', keys: ']', words: 'forward time travel', when: () => step(1) !== undefined, run: () => go(1) },
    { id: 'history.now', title: 'Back to now', group: 'History', keys: 'Escape', words: 'present live', when: () => at !== undefined, run: () => look(undefined) },
    { id: 'history.fork', title: 'Fork from here', group: 'History', words: 'branch copy thread', when: () => may, run: () => { const from = here ?? list[0]; if (from) fork(from); } },
    { id: 'history.rewind', title: 'Rewind to here…', group: 'History', words: 'go back undo', when: () => may && here !== undefined && !running, run: () => { if (here) rewind(here); } },
    { id: 'history.mark', title: 'Mark this place…', group: 'History', words: 'checkpoint label', when: () => may && !running && at === undefined, run: mark },
    { id: 'history.edit', title: 'Edit the shared state…', group: 'History', words: 'json', when: () => may && !running && at === undefined, run: () => edit({ state, where: 'now' }) },
  ]);
  return null;
}

/** Holds what a thread's history needs once: for the conversation and the inspector alike. */
export function HistoryProvider({ children }: { children: ReactNode }) {
  const thread = useThreadId();
  const { thread: shown, user } = usePlace();
  const running = useView(isRunning);
  const at = useCheckpointId();
  const look = useLookAt();
  const there = useSnapshot(isThere);
  const read = useCheckpoints(shown === undefined || !there ? undefined : thread, running);
  const names = useView(processesOf);
  const processes = useMemo(() => names.split('\n'), [names]);
  const [doing, setDoing] = useState<Doing | undefined>(undefined);
  const close = () => setDoing(undefined);
  const history = useMemo<History>(() => {
    const { graph, list } = read;
    const travel = (kind: 'rewind' | 'fork') => (checkpoint: Checkpoint) => setDoing({ what: 'travel', to: { kind, checkpoint, where: whereOf(graph, checkpoint) } });
    return {
      ...read, at, running, readOnly: user !== undefined,
      look: (id) => look(id),
      step(by) {
        const dot = neighbour(graph, at, by);
        if (dot) return dot.checkpoint;
        return by > 0 && at !== undefined && list.some((checkpoint) => checkpoint.id === at) ? null : undefined;
      },
      rewind: travel('rewind'), fork: travel('fork'),
      mark: () => setDoing({ what: 'mark' }),
      edit: (edit) => setDoing({ what: 'edit', edit }),
    };
  }, [read, at, running, user, look]);
  return (
    <Context value={history}>
      <KnownProcesses value={processes}>{children}</KnownProcesses>
      {shown !== undefined && <Keys history={history} />}
      <Suspense>
        {doing?.what === 'travel' && <Traveler to={doing.to} newest={read.list[0]} onClose={close} />}
        {doing?.what === 'mark' && <Marker onClose={close} />}
        {doing?.what === 'edit' && <StateEditor edit={doing.edit} onClose={close} />}
      </Suspense>
    </Context>
  );
}
