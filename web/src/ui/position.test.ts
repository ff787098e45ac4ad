import { describe, expect, it } from 'vitest';
import { positionIn } from './position.ts';

/** The text before the seam. */
const before = (source: string, shown: string, written: string) => shown.slice(0, positionIn(source, shown, written.length));

describe('positionIn', () => {
  it('finds the place in plain text', () => {
    expect(before('one two three', 'one two three', 'one two')).toBe('one two');
    expect(before('one two three', 'one two three', '')).toBe('');
    expect(before('one two three', 'one two three', 'one two three')).toBe('one two three');
  });
  it('does not tear a word', () => {
    expect(before('one two three', 'one two three', 'one t')).toBe('one two');
    expect(before('don’t tear', 'don’t tear', 'do')).toBe('don’t');
  });
  it('passes over the signs of Markdown', () => {
    expect(before('A **bold** word, and', 'A bold word, and', 'A **bold** word')).toBe('A bold word');
    expect(before('# Title\n\n- a\n- b and c', 'Title\na\nb and c', '# Title\n\n- a\n- b')).toBe('Title\na\nb');
    expect(before('see [here](http://x.test/y), then more', 'see here, then more', 'see [here](http://x.test/y), then')).toBe('see here, then');
    expect(before('`a` &amp; b c', 'a & b c', '`a` &amp; b')).toBe('a & b');
  });
  it('stands at the end of what was shown, inside a sign', () => {
    expect(before('see [here](http://x.test/y), then', 'see here, then', 'see [here](http://x')).toBe('see here');
  });
  it('is not thrown off by what was added', () => {
    expect(before('```go\na := 1\n```\nafter it', '⧉a := 1\nafter it', '```go\na := 1\n```\nafter')).toBe('⧉a := 1\nafter');
  });
  it('never leaves the text', () => {
    expect(positionIn('', '', 5)).toBe(0);
    expect(positionIn('abc', 'xyz', 2)).toBe(3);
    expect(positionIn('abc', 'abc', 99)).toBe(3);
  });
});
