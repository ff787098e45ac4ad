// A person's actions on a thread as a whole: rename, put away, delete.
import { useQueryClient } from '@tanstack/react-query';
import * as actions from '../api/actions.ts';
import { threadKey, threadsKey } from '../api/queries.ts';
import { useLeaving, useServer } from '../app/data.tsx';
import { useStudio } from '../app/context.tsx';
import { failureOf } from '../ui/ErrorCard.tsx';

export interface ThreadActions {
  rename: (id: string, title: string) => void;
  hide: (id: string, hidden: boolean) => void;
  /** Deletes in a moment, unless it is taken back: until then it is only out of sight. */
  remove: (id: string, name: string) => void;
}

export function useThreadActions(): ThreadActions {
  const server = useServer();
  const leaving = useLeaving();
  const client = useQueryClient();
  const { toasts, router } = useStudio();
  const refresh = async (id: string) => {
    await Promise.all([client.invalidateQueries({ queryKey: threadsKey }), client.invalidateQueries({ queryKey: threadKey(id) })]);
  };
  const failed = (what: string) => (err: unknown) => void toasts.show({ text: `${what} ${failureOf(err).message}`, tone: 'bad' });
  const stays = (id: string) => leaving.set((now) => new Set([...now].filter((each) => each !== id)));
  const hide = (id: string, hidden: boolean): void => {
    server.send(actions.describe(id, { hidden })).then(() => refresh(id)).then(() => {
      if (hidden) toasts.show({ text: 'Thread hidden', action: { label: 'Undo', run: () => hide(id, false) } });
    }).catch(failed(hidden ? 'The thread was not hidden.' : 'The thread was not shown again.'));
  };
  return {
    rename: (id, title) => void server.send(actions.describe(id, { title })).then(() => refresh(id)).catch(failed('The title was not changed.')),
    hide,
    remove: (id, name) => {
      leaving.set((now) => new Set(now).add(id));
      const { thread } = router.get();
      if (thread === id) router.go({ page: 'thread' });
      toasts.show({
        text: `“${name}” is deleted`,
        action: { label: 'Undo', run: () => {
          stays(id);
          if (thread === id) router.go({ page: 'thread', thread: id });
        } },
        onGone: () => void server.send(actions.remove(id)).catch(failed(`“${name}” was not deleted.`)).then(() => refresh(id)).finally(() => stays(id)),
      });
    },
  };
}
