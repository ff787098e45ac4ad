// Which commands somebody means, by what they type.
import type { Command } from './commands.ts';

/** How well text fits: 0 not at all. Beginnings of words beat what is inside of words, and that beats letters in order. */
export function fit(text: string, query: string): number {
  const t = text.toLowerCase();
  const q = query.toLowerCase();
  if (t.startsWith(q)) return 4;
  const at = t.indexOf(q);
  if (at > 0) return /\W/.test(t[at - 1]) ? 3 : 2;
  let from = 0;
  for (const letter of q) {
    from = t.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 1;
}

/** How the groups are listed while nothing is typed: what ends something is not where Enter finds it. */
const order = ['Go to', 'Thread', 'Conversation', 'History', 'Inspector', 'Replay', 'Operate', 'Page', 'Copy as curl'];

const place = ({ group }: Command): number => (order.includes(group) ? order.indexOf(group) : order.length);

/** The commands that fit every word of the query, best first; without one all of them, by their groups. */
export function rank(commands: readonly Command[], query: string): readonly Command[] {
  const words = query.split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...commands].sort((a, b) => place(a) - place(b));
  const scored = commands.map((command) => {
    const scores = words.map((w) => Math.max(fit(command.title, w) * 2, w.length > 1 ? fit(`${command.group} ${command.words ?? ''}`, w) : 0));
    return { command, score: scores.includes(0) ? 0 : scores.reduce((a, b) => a + b, 0) };
  });
  return scored.filter((s) => s.score > 0).sort((a, b) => b.score - a.score).map((s) => s.command);
}
