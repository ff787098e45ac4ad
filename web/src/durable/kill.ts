// The story of a kill: what happens between the button and the first word that comes after it.
import { span } from '../log/words.ts';

/** idle: nothing. sent: the request is on its way. dead: it is gone. back: a process answers again. went_on: the run goes on. failed: it was not killed. */
export type Phase = 'idle' | 'sent' | 'dead' | 'back' | 'went_on' | 'failed';

export interface Story {
  readonly phase: Phase;
  /** When the button was pressed, and when a process answered again, in milliseconds. */
  readonly killedAt: number;
  readonly backAt: number;
  /** When the run was seen to go on. */
  readonly wentOnAt: number;
  /** How many takeovers the thread had then: one more is ours. */
  readonly seams: number;
  /** Whether a run was under way. */
  readonly running: boolean;
  readonly problem: string;
}

export const noStory: Story = { phase: 'idle', killedAt: 0, backAt: 0, wentOnAt: 0, seams: 0, running: false, problem: '' };

/** Whether somebody waits for what comes next. */
export const isOpen = ({ phase, running }: Story): boolean => phase === 'sent' || phase === 'dead' || (phase === 'back' && running);

export interface Told {
  readonly title: string;
  readonly text: string;
}

/** The text of each phase. */
export function tell({ phase, killedAt, backAt, wentOnAt, running, problem }: Story): Told | undefined {
  const after = backAt > killedAt ? ` after ${span(backAt - killedAt)}` : '';
  switch (phase) {
    case 'idle': return undefined;
    case 'sent': return { title: 'Killing the server…', text: 'It gets SIGKILL, and no chance to clean up.' };
    case 'dead': return { title: 'The server is dead', text: `Everything that you see was stored before it was shown.${running ? ' The run goes on as soon as a process is there.' : ''}` };
    case 'back':
      return running
        ? { title: `A new process is there${after}`, text: 'It takes the run over and asks the model for the rest.' }
        : { title: `A new process is there${after}`, text: 'No run was under way. Nothing was lost.' };
    case 'went_on': return { title: `The run went on ${span(wentOnAt - killedAt)} after the kill`, text: 'Nothing was lost, and no finished tool ran twice. The mark in the conversation is the place.' };
    case 'failed': return { title: 'The server was not killed', text: problem };
  }
}
