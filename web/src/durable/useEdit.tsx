// Marks a place, and edits the state of one: the dialogs with what they do.
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import * as actions from '../api/actions.ts';
import { threadKey, threadsKey } from '../api/queries.ts';
import type { Action } from '../api/request.ts';
import type { Checkpoint, Traveled } from '../api/types.ts';
import { useAnnounce, useStudio, useToast } from '../app/context.tsx';
import { useCopyCurl, useServer } from '../app/data.tsx';
import { useThread } from '../log/hooks.tsx';
import { uuid } from '../log/page.ts';
import { EditStateDialog, MarkDialog } from './EditState.tsx';

/** Does one thing at a time, and keeps why it failed. */
function useDoing() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const run = async (act: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await act();
    } catch (err) {
      setError(err);
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, run: (act: () => Promise<void>) => void run(act) };
}

function useSaid(): (text: string) => void {
  const toast = useToast();
  const announce = useAnnounce();
  return (text) => {
    announce(text);
    toast({ text, tone: 'good' });
  };
}

/** Marks where the thread stands. */
export function Marker({ onClose }: { onClose: () => void }) {
  const store = useThread();
  const client = useQueryClient();
  const said = useSaid();
  const copyCurl = useCopyCurl();
  const { busy, error, run } = useDoing();
  const mark = (label: string) => run(async () => {
    await store.act<Checkpoint>(actions.checkpoint(store.thread, { label }));
    void client.invalidateQueries({ queryKey: threadKey(store.thread) });
    onClose();
    said(`Marked: ${label}.`);
  });
  return <MarkDialog open onClose={onClose} busy={busy} error={error} onSave={mark} onCopyCurl={(label) => copyCurl(actions.checkpoint(store.thread, { label }))} />;
}

/** A state to edit: that of now, or that of a checkpoint. */
export interface Editable {
  readonly state: unknown;
  readonly where: string;
  /** Of the past: the checkpoint to fork from. */
  readonly checkpoint?: Checkpoint;
}

/** Edits a state: that of now is replaced, one of the past is that of a fork. */
export function StateEditor({ edit, onClose }: { edit: Editable; onClose: () => void }) {
  const { state, where, checkpoint } = edit;
  const store = useThread();
  const server = useServer();
  const client = useQueryClient();
  const { router } = useStudio();
  const said = useSaid();
  const copyCurl = useCopyCurl();
  const { busy, error, run } = useDoing();
  const body = (next: unknown, label: string) => ({ state: next, ...(label.trim() && { label: label.trim() }) });
  // The fork is kept while its state is refused, and gets the next one.
  const fork = useRef('');
  const save = (next: unknown, label: string) => run(async () => {
    if (!checkpoint) {
      await store.act<Checkpoint>(actions.checkpoint(store.thread, body(next, label)));
    } else {
      fork.current ||= (await server.json<Traveled>(actions.fork(store.thread, { checkpointId: checkpoint.id }))).thread.id;
      await server.json<Checkpoint>(actions.checkpoint(fork.current, body(next, label)));
      router.go({ page: 'thread', thread: fork.current });
    }
    void client.invalidateQueries({ queryKey: threadKey(store.thread) });
    void client.invalidateQueries({ queryKey: threadsKey });
    onClose();
    said(checkpoint ? `Forked from ${where}, with another state.` : 'The state was replaced.');
  });
  const commands = (next: unknown, label: string): Action[] => {
    if (!checkpoint) return [actions.checkpoint(store.thread, body(next, label))];
    // The second command must know what thread the first one makes.
    const threadId = uuid(window.crypto);
    return [actions.fork(store.thread, { checkpointId: checkpoint.id, threadId }), actions.checkpoint(threadId, body(next, label))];
  };
  return (
    <EditStateDialog
      open onClose={onClose} state={state} where={where} forks={checkpoint !== undefined} busy={busy} error={error} onSave={save}
      onCopyCurl={(next, label) => copyCurl(...commands(next, label))}
    />
  );
}
