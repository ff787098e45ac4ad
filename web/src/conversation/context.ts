// The actions of the rows of a conversation, and their knowledge of their surroundings. It changes seldom,
// so that a row is drawn again only when its own item has changed.
import { createContext, useContext } from 'react';
import type { Branch, Item, TextItem } from '../log/view.ts';

/** Ways in which the conversation went on from the same place. */
export interface Versions {
  readonly branch: Branch;
  /** From 0. */
  readonly shown: number;
  readonly count: number;
}

export interface Rows {
  /** Nothing can be changed: it is looked at as it was, or it is another user's. */
  readonly readOnly: boolean;
  /** A run is under way, so nothing else can be begun. */
  readonly busy: boolean;
  /** The id of the thread. */
  readonly thread: string;
  /** The key of the last answer, which another one can be asked for. */
  readonly lastAnswer: string;
  versionsOf: (key: string) => Versions | undefined;
  /** A person's message is replaced, and gets a new answer; resolves when the server has taken it. */
  edit: (item: TextItem, text: string) => Promise<void>;
  /** Another answer to what was asked. */
  regenerate: (item: Item) => void;
  switchTo: (branch: Branch, version: number) => void;
  /** Adds words to the message that is being written. */
  say: (words: string) => void;
  /** Shows the records that an item is made of. */
  showRecords: (item: Item) => void;
  /** Whether a row is open, kept while it is out of view; undefined: nobody has said. */
  isOpen: (key: string) => boolean | undefined;
  setOpen: (key: string, open: boolean) => void;
}

export const RowsContext = createContext<Rows | null>(null);

export function useRows(): Rows {
  const rows = useContext(RowsContext);
  if (!rows) throw new Error('a row is shown outside of a conversation');
  return rows;
}
