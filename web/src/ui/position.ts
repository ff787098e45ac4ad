// Where a position in a text is, after the text was rendered from Markdown. The rendered text is
// nearly what was written without the signs, so both are walked side by side.

const space = /\s/;

const word = /[\p{L}\p{N}]/u;

/** How far ahead in the source a character is looked for before it is taken for an addition. */
const ahead = 400;

/**
 * Returns how many characters of `shown` stand before the position `offset` of `source`. It
 * is moved to the end of a word: a word is not torn.
 */
export function positionIn(source: string, shown: string, offset: number): number {
  let at = 0;
  let from = 0;
  while (at < shown.length) {
    const character = shown[at] as string;
    if (space.test(character)) {
      // Line breaks and indents are not where they were written: only signs are passed over.
      if (from >= offset) break;
      let next = from;
      while (next < source.length && !space.test(source[next] as string) && !word.test(source[next] as string)) next++;
      if (next < source.length && space.test(source[next] as string)) {
        if (next >= offset) break;
        from = next;
        while (from < offset && space.test(source[from] ?? '')) from++;
      }
      at++;
      continue;
    }
    const found = source.slice(from, from + ahead).indexOf(character);
    if (found >= 0 && from + found >= offset) break;
    if (found >= 0) from += found + 1;
    at++;
  }
  return wordEnd(shown, at);
}

/** The end of the word that a position is in. Between words it is the position itself. */
function wordEnd(text: string, at: number): number {
  if (at === 0 || space.test(text[at - 1] ?? ' ')) return at;
  let end = at;
  while (end < text.length && /[\p{L}\p{N}_'’-]/u.test(text[end] as string)) end++;
  return end;
}
