// An action as a command for a shell.

import { requestOf, type Action } from './request';

/** A word of a POSIX shell that means exactly this text. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/**
 * Returns the command that sends an action. With keys it has a placeholder for yours: what
 * is copied is pasted into chats and tickets.
 */
export function curl(base: string, action: Action, withKey = false): string {
  const { method, headers, body } = requestOf(action);
  const words = ['curl', ...(headers['Accept'] === 'text/event-stream' ? ['-N'] : [])];
  if (method !== 'GET' && !(method === 'POST' && typeof body === 'string')) words.push('-X', method);
  words.push(quoted(base + action.path));
  if (withKey) words.push('-H', '"Authorization: Bearer $HOLDFAST_KEY"');
  for (const [name, value] of Object.entries(headers)) words.push('-H', quoted(`${name}: ${value}`));
  if (typeof body === 'string') words.push('-d', quoted(body));
  return words.join(' ');
}
