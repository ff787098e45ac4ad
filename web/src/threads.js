// @ts-check
// The list of threads, as the server has and names them.

import { h, $, ago } from './dom.js';

/**
 * A thread's title: the server's, or before it has made one, the first words said in it.
 * @param {any[]} threads @param {string} id @param {string} [said]
 */
export const titleOf = (threads, id, said = '') => threads.find((t) => t.id === id)?.title || said.trim().slice(0, 80) || `Thread ${id.slice(0, 8)}`;

/** The thread that the page's address names; '' if it names none. @param {string} hash */
export function threadIn(hash) {
  try {
    return decodeURIComponent(/^#\/t\/(.+)$/.exec(hash)?.[1] ?? '');
  } catch {
    return ''; // a % that encodes nothing
  }
}

/** A thread's status: a style and words for it. @param {any} t */
export function standing(t) {
  if (t.status === 'running') return ['running', 'running'];
  if (t.status === 'interrupted') return ['waiting', 'waits for you'];
  if (t.status === 'stopped') return ['failed', t.outcome === 'error' ? 'failed' : 'unfinished'];
  if (t.status === 'unreadable') return ['failed', 'cannot be read'];
  if (t.outsideCalls?.length) return ['waiting', 'waits for ' + t.outsideCalls.map((/** @type {any} */ c) => c.toolName).join(', ')];
  if (t.pendingToolCallIds?.length || t.pendingToolCalls?.length) return ['waiting', 'waits for a tool'];
  return t.outcome === 'cancelled' ? ['none', 'stopped'] : ['done', 'done'];
}

/** @param {any[]} threads @param {string} current @param {number} now */
export function drawThreads(threads, current, now) {
  const wanted = $('filter').value.trim().toLowerCase();
  threads = threads.filter((t) => !t.hidden); // a person has put them away
  const list = threads.filter((t) => !wanted || `${titleOf(threads, t.id)} ${t.id} ${standing(t)[1]}`.toLowerCase().includes(wanted));
  const focused = document.activeElement?.getAttribute('href');
  $('threads').replaceChildren(...list.map((t) => {
    const [style, words] = standing(t);
    return h('li', {}, h('a', { href: '#/t/' + encodeURIComponent(t.id), 'aria-current': t.id === current ? 'page' : null },
      h('span.title', {}, titleOf(threads, t.id)),
      h('span.meta', {}, h('span.dot', { 'data-state': style, 'aria-hidden': 'true' }), `${words} · ${ago(t.updatedAt, now)}`)));
  }));
  if (focused) for (const a of $('threads').querySelectorAll('a')) if (a.getAttribute('href') === focused) a.focus();
  $('nothreads').hidden = list.length > 0;
  $('nothreads').textContent = threads.length ? 'No thread matches.' : 'No threads yet.';
}
