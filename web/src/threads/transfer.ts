// Threads as files: what one has, to keep it or to give it away.
import * as actions from '../api/actions.ts';
import { useServer } from '../app/data.tsx';
import { useToast } from '../app/context.tsx';
import { failureOf } from '../ui/ErrorCard.tsx';
import { bytes } from '../ui/time.ts';

/** The name of an exported thread's file. */
export function fileName(name: string): string {
  const plain = name.normalize('NFKD').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 60);
  return `${plain || 'thread'}.holdfast.json`;
}

/** Gives the browser a file to save. */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Exports a thread, also another user's. */
export function useExport(): (thread: string, name: string, user?: string) => void {
  const server = useServer();
  const toast = useToast();
  return (thread, name, user = '') => {
    server.send(actions.as(user, actions.exportThread(thread))).then((r) => r.blob()).then((content) => {
      save(fileName(name), content);
      toast({ text: `Exported: ${fileName(name)}, ${bytes(content.size)}`, tone: 'good' });
    }).catch((error: unknown) => toast({ text: `The thread was not exported. ${failureOf(error).message}`, tone: 'bad' }));
  };
}

/** A file's facts about the thread in it. */
export interface ThreadFile {
  readonly name: string;
  readonly size: number;
  readonly thread: string;
  readonly tenant: string;
  readonly messages: number;
  readonly records: number;
  readonly content: string;
}

const many = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

/** Reads an exported thread; it throws what is wrong with it in words. */
export function readThreadFile(name: string, content: string): ThreadFile {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch {
    throw new Error(`${name} is not JSON. Export writes one JSON document; perhaps the file is not whole.`);
  }
  const it = (typeof document === 'object' && document !== null ? document : {}) as Record<string, unknown>;
  if (it['kind'] !== 'holdfast.thread' || typeof it['thread'] !== 'string') throw new Error(`${name} is no exported thread. “Export” in the menu of a thread makes such files, and so does holdfast export.`);
  return { name, size: new Blob([content]).size, thread: it['thread'], tenant: typeof it['tenant'] === 'string' ? it['tenant'] : '', messages: many(it['messages']), records: many(it['records']), content };
}
