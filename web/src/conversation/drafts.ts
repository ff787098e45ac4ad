// The texts and attachments that somebody has begun, for each thread, kept over reloads: the text
// as long as the browser keeps anything, the files as long as the tab.
import { useCallback, useState } from 'react';
import { restored, type Attachment } from './attachments.ts';

export interface Draft {
  readonly text: string;
  readonly files: readonly Attachment[];
}

const textSlot = (thread: string): string => `holdfast.draft.${thread}`;
const filesSlot = (thread: string): string => `holdfast.files.${thread}`;

/** Does something with a storage; a browser may have none, or no room in it. */
function attempt<T>(act: () => T, otherwise: T): T {
  try {
    return act();
  } catch {
    return otherwise;
  }
}

function load(thread: string): Draft {
  return {
    text: attempt(() => localStorage.getItem(textSlot(thread)) ?? '', ''),
    files: attempt(() => restored(JSON.parse(sessionStorage.getItem(filesSlot(thread)) ?? '[]')), []),
  };
}

function keep(storage: () => Storage, slot: string, value: string): void {
  attempt(() => storage().removeItem(slot), undefined);
  // If there is no room, it lasts as long as the page.
  if (value !== '') attempt(() => storage().setItem(slot, value), undefined);
}

export interface Drafting extends Draft {
  write: (text: string) => void;
  attach: (files: readonly Attachment[]) => void;
}

/** The draft of a thread ('' for the next new one), and how to change it. */
export function useDraft(thread: string): Drafting {
  const [draft, setDraft] = useState(() => ({ thread, ...load(thread) }));
  const now = draft.thread === thread ? draft : { thread, ...load(thread) };
  if (now !== draft) setDraft(now);
  const write = useCallback((text: string) => {
    keep(() => localStorage, textSlot(thread), text);
    setDraft((last) => (last.thread === thread ? { ...last, text } : last));
  }, [thread]);
  const attach = useCallback((files: readonly Attachment[]) => {
    keep(() => sessionStorage, filesSlot(thread), files.length === 0 ? '' : JSON.stringify(files));
    setDraft((last) => (last.thread === thread ? { ...last, files } : last));
  }, [thread]);
  return { text: now.text, files: now.files, write, attach };
}
