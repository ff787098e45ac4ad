// The button that kills the server, in demo mode, and what is told while it is away.
import { useQueryClient } from '@tanstack/react-query';
import { createContext, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from 'react';
import * as actions from '../api/actions.ts';
import { ApiError } from '../api/request.ts';
import { useAnnounce, useCommands } from '../app/context.tsx';
import { useConfig, useServer, useThreadId } from '../app/data.tsx';
import { useSides } from '../app/sides.tsx';
import { useView } from '../log/hooks.tsx';
import type { SeamItem, View } from '../log/view.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { AlertDialog } from '../ui/Dialog.tsx';
import { failureOf } from '../ui/ErrorCard.tsx';
import { BoltIcon, CheckIcon, CloseIcon, WarningIcon } from '../ui/icons.tsx';
import { Spinner } from '../ui/Spinner.tsx';
import { duration } from '../ui/time.ts';
import { useNow } from '../ui/Time.tsx';
import { isOpen, noStory, tell, type Story } from './kill.ts';
import './Kill.css';

/** The mark that somebody knows what the button does. */
const known = 'holdfast.kill-explained';

/** How often it is asked whether a process is there again, in milliseconds. */
const beat = 150;

interface Kill {
  /** Whether this server lets itself be killed. */
  readonly can: boolean;
  readonly story: Story;
  press(): void;
  dismiss(): void;
}

const Context = createContext<Kill | null>(null);

export function useKill(): Kill {
  const kill = useContext(Context);
  if (!kill) throw new Error('the kill button is used outside of its provider');
  return kill;
}

const seamsOf = (view: View): SeamItem[] => view.items.filter((item): item is SeamItem => item.kind === 'seam');
const countOf = (view: View): number => seamsOf(view).length;
const lastOf = (view: View): SeamItem | undefined => seamsOf(view).at(-1);
const runs = (view: View): boolean => view.status === 'running';

/** Asks until a process answers. */
function useWatch(story: Story, onBack: () => void): void {
  const server = useServer();
  const waiting = story.phase === 'dead';
  const back = useRef(onBack);
  useEffect(() => {
    back.current = onBack;
  });
  useEffect(() => {
    if (!waiting) return undefined;
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => void server.json(actions.pageConfig(), ended.signal).then(() => back.current(), () => {
      if (!ended.signal.aborted) timer = setTimeout(look, beat);
    });
    timer = setTimeout(look, beat);
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [waiting, server]);
}

/** Holds the story of a kill: the button, the dialog that explains it once, and what is told. */
export function KillProvider({ storage, children }: { storage: Pick<Storage, 'getItem' | 'setItem'>; children: ReactNode }) {
  const server = useServer();
  const client = useQueryClient();
  const config = useConfig();
  const announce = useAnnounce();
  const [story, setStory] = useState<Story>(noStory);
  const [asking, setAsking] = useState(false);
  const seams = useView(countOf);
  const seam = useView(lastOf);
  const running = useView(runs);
  const can = config.kill === true;
  const kill = useCallback(() => {
    setAsking(false);
    storage.setItem(known, 'yes');
    setStory({ ...noStory, phase: 'sent', killedAt: Date.now(), seams, running });
    server.send(actions.kill()).catch((err: unknown) => {
      // A process that is killed while it answers does not finish its answer.
      if (err instanceof ApiError && err.status === 0) return;
      setStory((now) => ({ ...now, phase: 'failed', problem: failureOf(err).message }));
      throw err;
    }).then(() => setStory((now) => (now.phase === 'sent' ? { ...now, phase: 'dead' } : now)), () => {});
  }, [server, storage, seams, running]);
  const press = useCallback(() => {
    if (isOpen(story)) return;
    if (storage.getItem(known) === null) setAsking(true);
    else kill();
  }, [kill, storage, story]);
  useWatch(story, () => {
    setStory((now) => ({ ...now, phase: 'back', backAt: Date.now() }));
    void client.invalidateQueries();
  });
  const wentOn = story.running && (story.phase === 'dead' || story.phase === 'back') && seams > story.seams && seam !== undefined && (seam.target !== '' || !running);
  useEffect(() => {
    if (wentOn) setStory((now) => ({ ...now, phase: 'went_on', wentOnAt: Date.now() }));
  }, [wentOn]);
  // Another thread has nothing to do with it.
  const thread = useThreadId();
  const of = useRef(thread);
  useEffect(() => {
    if (of.current !== thread) setStory((now) => (isOpen(now) ? now : noStory));
    of.current = thread;
  }, [thread]);
  const told = tell(story);
  const said = told ? `${told.title}. ${told.text}` : '';
  useEffect(() => {
    if (said) announce(said);
  }, [said, announce]);
  useCommands([{ id: 'kill', title: 'Kill the server', group: 'Demo', words: 'crash sigkill process', when: () => can && !isOpen(story), run: press }]);
  return (
    <Context value={{ can, story, press, dismiss: () => setStory(noStory) }}>
      {children}
      <AlertDialog
        open={asking} onClose={() => setAsking(false)} title="Kill the server?" confirm="Kill it" danger onConfirm={kill}
        about={(
          <>
            <p>This really kills the process, with SIGKILL: nothing can be caught, nothing is cleaned up. Try it in the middle of an answer.</p>
            <p className="durable-kill-what">Everything you see stays, because it was stored before it was shown. Another process is started, and the run goes on by itself at the word where it was cut off. You are asked only this once.</p>
          </>
        )}
      />
    </Context>
  );
}

/** Kills the server, where a server lets itself be killed. */
export function KillButton() {
  const { can, story, press } = useKill();
  const { narrow } = useSides();
  if (!can) return null;
  if (narrow) return <IconButton label="Kill the server" className="durable-kill" aria-disabled={isOpen(story) || undefined} onClick={press}><BoltIcon /></IconButton>;
  return <Button kind="danger" size="small" icon={<BoltIcon />} busy={isOpen(story)} onClick={press}>Kill the server</Button>;
}

/** How long it is away already, once that is worth saying. */
function Since({ at }: { at: number }) {
  const ms = useNow('second') - at;
  return ms < 900 ? null : <span className="durable-story-time num">{duration(Math.round(ms / 1000) * 1000)}</span>;
}

/** The events after a kill, while they happen. */
export function KillStory() {
  const { story, dismiss } = useKill();
  const told = tell(story);
  if (!told) return null;
  const open = isOpen(story);
  return (
    <section className="durable-story" data-phase={story.phase} aria-label="The kill of the server">
      <span className="durable-story-icon" aria-hidden="true">{story.phase === 'failed' ? <WarningIcon /> : open ? <Spinner /> : <CheckIcon />}</span>
      <div className="grow">
        <p className="durable-story-title">{told.title}</p>
        <p className="durable-story-text">{told.text}</p>
      </div>
      {open && <Since at={story.killedAt} />}
      {!open && <IconButton size="small" label="Dismiss" onClick={dismiss}><CloseIcon /></IconButton>}
    </section>
  );
}
