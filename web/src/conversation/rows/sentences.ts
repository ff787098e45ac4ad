import { usePreferences } from '../../app/context.tsx';

/** How much of a growing text is shown: all of it, or only whole sentences for those who prefer that. */
export function useWholeSentences(text: string, open: boolean): string {
  const [{ streaming }] = usePreferences();
  if (streaming || !open) return text;
  const end = Math.max(text.lastIndexOf('\n\n'), ...['. ', '! ', '? ', '.\n'].map((mark) => text.lastIndexOf(mark) + 1));
  return end > 0 ? text.slice(0, end) : '';
}
