// Where other parts of Studio put what they know of a thread into its conversation.
import { AtPosition as Banner, CheckpointStrip } from '../durable/Bar.tsx';
import { KillButton, KillStory } from '../durable/Kill.tsx';
import { SeamLine } from '../durable/Seam.tsx';
import type { Item, SeamItem } from '../log/view.ts';

/** Whether a seam has a row of its own: until its text is said again, and where nothing was cut. */
export const hasRow = (item: Item): boolean => item.kind !== 'seam' || item.place === 'before' || item.target === '';

/** Where one process died and another went on, as a row of its own: before the text that was said again. */
export function SeamRow({ item }: { item: SeamItem }) {
  return <SeamLine seam={item} />;
}

/** Over the conversation: what is said while it is looked at as it was. */
export function AtPosition() {
  return <Banner />;
}

/** In the header: what one can do with the thread. */
export function ThreadActions(_: { thread: string }) {
  return <KillButton />;
}

/** Between the conversation and the composer. */
export function UnderConversation({ thread }: { thread: string }) {
  return (
    <>
      <KillStory />
      <CheckpointStrip thread={thread} />
    </>
  );
}
