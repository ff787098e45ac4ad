// The footer of what is shown: how the connection, the log and the run are.
import { useInfiniteQuery } from '@tanstack/react-query';
import { useCallback } from 'react';
import { ApiError } from '../api/request.ts';
import { useSnapshot, useStanding } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import type { Status } from '../log/view.ts';
import type { Tone } from '../ui/StatusDot.tsx';
import { usePlace } from './context.tsx';
import { useConfig, useQueries } from './data.tsx';
import { Footer, type Standing } from './Footer.tsx';

/** How a run stands, in a word. */
export const runStandings: Record<Status, { text: string; tone: Tone } | undefined> = {
  idle: undefined,
  running: { text: 'Running', tone: 'active' },
  waiting: { text: 'Waiting for you', tone: 'wait' },
  failed: { text: 'Failed', tone: 'bad' },
  stopped: { text: 'Stopped', tone: 'neutral' },
  done: { text: 'Done', tone: 'good' },
};

const connectionOf = (standing: Snapshot['standing'], known: boolean, away: boolean): Standing['connection'] => {
  if (away && standing !== 'reconnecting') return 'offline';
  if (standing === 'reconnecting') return 'reconnecting';
  return standing === 'loading' && known ? 'connecting' : 'connected';
};

const facts = ({ log, view }: Snapshot) => ({ cursor: log.cursor, status: view.status, tokens: view.usage.reduce((n, u) => n + u.totalTokens, 0) });
const same = (a: ReturnType<typeof facts>, b: ReturnType<typeof facts>) => a.cursor === b.cursor && a.status === b.status && a.tokens === b.tokens;

export function LiveFooter() {
  const { thread, page } = usePlace();
  const { standing } = useStanding();
  const { cursor, status, tokens } = useSnapshot(useCallback(facts, []), same);
  const { version } = useConfig();
  // The query that is repeated all the time, on every page: whether the server answers.
  const { failureReason } = useInfiniteQuery(useQueries().questions());
  const away = failureReason instanceof ApiError && failureReason.status === 0;
  const shown = page === 'thread' && thread !== undefined;
  const run = shown ? runStandings[status] : undefined;
  return (
    <Footer standing={{
      connection: connectionOf(standing, shown, away),
      ...(shown && cursor && { position: cursor }),
      ...(run && { run }),
      ...(shown && tokens > 0 && { usage: `${tokens.toLocaleString('en')} ${tokens === 1 ? 'token' : 'tokens'}` }),
      ...(version && { server: version }),
    }}
    />
  );
}
