// Goes back to a checkpoint, or forks from it: the dialog with what it does.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import * as actions from '../api/actions.ts';
import { threadKey, threadsKey } from '../api/queries.ts';
import { ApiError } from '../api/request.ts';
import type { Checkpoint, Traveled } from '../api/types.ts';
import { useAnnounce, useStudio, useToast } from '../app/context.tsx';
import { useCopyCurl, useServer } from '../app/data.tsx';
import { useThread } from '../log/hooks.tsx';
import { failureOf } from '../ui/ErrorCard.tsx';
import { useLookAt } from './look.ts';
import { TravelDialog } from './Travel.tsx';
import { travelOf, type Choices } from './travel.ts';

/** Where one wants to go. */
export interface Destination {
  readonly kind: 'rewind' | 'fork';
  readonly checkpoint: Checkpoint;
  /** "step 3 of 7" */
  readonly where: string;
}

const actionOf = ({ kind }: Destination) => (kind === 'rewind' ? actions.rewind : actions.fork);

/** The basis of a decision. A thread has another ETag when its log is archived, too, and then nothing else is another: not where its log and its checkpoints end. */
const saysOf = (kind: Destination['kind'], { thread, checkpoint, effects, effectsIncomplete }: Traveled): string =>
  JSON.stringify([effects, effectsIncomplete, kind === 'rewind' && [thread.cursor, checkpoint.id]]);

/** Asks, and does it. `newest` is the checkpoint that undoes a rewind. */
export function Traveler({ to, newest, onClose }: { to: Destination; newest: Checkpoint | undefined; onClose: () => void }) {
  const server = useServer();
  const store = useThread();
  const client = useQueryClient();
  const { router } = useStudio();
  const lookAt = useLookAt();
  const toast = useToast();
  const announce = useAnnounce();
  const copyCurl = useCopyCurl();
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<unknown>(undefined);
  const { kind, checkpoint, where } = to;
  const ask = useQuery({
    queryKey: ['preview', store.thread, kind, checkpoint.id],
    queryFn: ({ signal }) => server.json<Traveled>(actionOf(to)(store.thread, { checkpointId: checkpoint.id, preview: true }), signal),
    gcTime: 0, retry: false,
  });
  const effects = ask.data?.effects;
  // Exactly what was shown, or nothing: somebody else may have gone on with the thread.
  const action = (choices: Choices, etag = ask.data?.thread.etag) => actionOf(to)(store.thread, travelOf(checkpoint.id, effects ?? [], choices), etag);
  const travel = async (choices: Choices): Promise<Traveled> => {
    const shown = ask.data;
    try {
      return await store.act<Traveled>(action(choices));
    } catch (err) {
      if (!(err instanceof ApiError) || err.code !== 'checkpoint_conflict') throw err;
      const { data: now } = await ask.refetch();
      if (!shown || !now || saysOf(kind, now) !== saysOf(kind, shown)) throw err;
      return store.act<Traveled>(action(choices, now.thread.etag));
    }
  };
  const said = (text: string, undo?: () => void) => {
    announce(text);
    toast({ text, tone: 'good', ...(undo && { action: { label: 'Undo', run: undo }, lasts: 12_000 }) });
  };
  const changed = () => {
    void client.invalidateQueries({ queryKey: threadKey(store.thread) });
    void client.invalidateQueries({ queryKey: threadsKey });
  };
  const complain = (err: unknown) => void toast({ text: failureOf(err).message, tone: 'bad' });
  const undo = (before: Checkpoint) => {
    store.act<Traveled>(actions.rewind(store.thread, { checkpointId: before.id })).then(() => {
      changed();
      said('The thread stands where it was before.');
    }, complain);
  };
  const go = async (choices: Choices, goOn: boolean) => {
    setBusy(true);
    setFailed(undefined);
    try {
      const done = await travel(choices);
      changed();
      onClose();
      if (kind === 'fork') {
        router.go({ page: 'thread', thread: done.thread.id });
        said(`Forked from ${where}.`);
        return;
      }
      lookAt(undefined);
      said(`The thread went back to ${where}.`, newest && !goOn ? () => undo(newest) : undefined);
      // The dialog is closed: what is wrong from here on is said beside it.
      if (goOn) store.resume().catch(complain);
    } catch (err) {
      setFailed(err);
      void ask.refetch();
    } finally {
      setBusy(false);
    }
  };
  return (
    <TravelDialog
      open kind={kind} where={where} onClose={onClose} effects={effects} incomplete={ask.data?.effectsIncomplete} error={failed ?? ask.error} busy={busy}
      unfinished={kind === 'rewind' && checkpoint.status === 'running'} onConfirm={(choices, goOn) => void go(choices, goOn)} onCopyCurl={(choices) => copyCurl(action(choices))}
    />
  );
}
