// The ways in which a conversation went on from the same place, and how to go to another one.
import { useCallback } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import * as actions from '../api/actions.ts';
import { useQueries, useServer } from '../app/data.tsx';
import { useToast } from '../app/context.tsx';
import { useThread } from '../log/hooks.tsx';
import { reduce } from '../log/reduce.ts';
import type { CheckpointList, Traveled } from '../api/types.ts';
import type { Branch, View } from '../log/view.ts';
import { failureOf } from '../ui/ErrorCard.tsx';
import { plural } from '../ui/time.ts';
import type { Versions } from './context.ts';

/** Which versions there are at an item. Of an item that several branches begin with, the last counts. */
export function versionsAt(branches: readonly Branch[], key: string): Versions | undefined {
  const branch = branches.findLast((b) => b.versions[b.shown]?.key === key && b.versions.length > 1);
  return branch && { branch, shown: branch.shown, count: branch.versions.length };
}

/** The run that has brought an item, or what follows it: what a person says is in the snapshot with which the run begins. */
export function runOf(views: readonly View[], key: string): string {
  for (const { items } of views) {
    const at = items.findIndex((i) => i.key === key);
    const found = at < 0 ? undefined : items.slice(at).find((i) => i.runId !== '');
    if (found) return found.runId;
  }
  return '';
}

export function useSwitch(): (branch: Branch, version: number) => void {
  const store = useThread();
  const server = useServer();
  const all = useQueries();
  const toast = useToast();
  const client = useQueryClient();
  return useCallback((branch, at) => {
    const wanted = branch.versions[at];
    if (!wanted) return;
    const go = async () => {
      const checkpointId = wanted.checkpointId || await newestOf(wanted.key);
      if (!checkpointId) throw new Error('The server has no checkpoint of this version any more.');
      const { effects } = await store.act<Traveled>(actions.rewind(store.thread, { checkpointId }));
      void client.invalidateQueries({ queryKey: all.checkpoints(store.thread).queryKey });
      if (effects.length > 0) toast({ text: `${plural(effects.length, 'effect')} outside of this thread stay as they are.` });
    };
    /** The last checkpoint of the run that an item is of: a version that was never left by branching has no other mark. */
    const newestOf = async (key: string): Promise<string> => {
      const { log, view: now } = store.get();
      const runId = runOf([...branch.versions.map((v) => v.number), now.number].filter((n) => n > 0).map((n) => reduce(log, log.positionOf(n))), key);
      const { checkpoints } = await server.json<CheckpointList>(actions.checkpoints(store.thread, '', 200));
      return checkpoints.find((c) => c.runId === runId && c.metadata.source === 'loop')?.id ?? '';
    };
    go().catch((err: unknown) => toast({ text: failureOf(err).message, tone: 'bad' }));
  }, [store, server, all, toast, client]);
}
