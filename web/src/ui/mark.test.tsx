import { render } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { Markdown } from './Markdown.tsx';

const flat = (element: HTMLElement) => element.textContent?.replace(/\n/g, '');

const shown = (text: string, before: string) => {
  const { container } = render(<Markdown text={text} marks={[{ key: 'm', offset: before.length, node: <b>|</b> }]} />);
  return flat(container);
};

describe('a mark in Markdown', () => {
  it('stands at the word', () => {
    expect(shown('one two three', 'one two')).toBe('one two| three');
    expect(shown('one **two** three', 'one **two**')).toBe('one two| three');
    expect(shown('one two three', '')).toBe('|one two three');
    expect(shown('one two', 'one two')).toBe('one two|');
  });
  it('stands in the right block, and at the end of one rather than between two', () => {
    expect(shown('first\n\nsecond here\n\nthird', 'first\n\nsecond')).toBe('firstsecond| herethird');
    expect(shown('first\n\nsecond', 'first\n\n')).toBe('first|second');
    expect(shown('- a\n- b\n- c', '- a\n- b')).toMatch(/a\s*b\|\s*c/);
  });
  it('is no part of a link', () => {
    const { container } = render(<Markdown text="see [the page](https://x.test/) now" marks={[{ key: 'm', offset: 6, node: <b>|</b> }]} />);
    expect(container.querySelector('a b')).toBeNull();
    expect(flat(container)).toBe('see the page| now');
  });
  it('stands in code', () => {
    expect(shown('```go\na := 1\nb := 2\n```', '```go\na := 1')).toContain('a := 1|b := 2');
  });
  it('does not make markup of what is written', () => {
    const { container } = render(<Markdown text={'<span data-mark="m">x</span> y'} marks={[{ key: 'm', offset: 99, node: <b>|</b> }]} />);
    expect(container.querySelectorAll('b')).toHaveLength(1);
  });
  it('stays where it is while the text grows, and is taken away again', () => {
    const mark = [{ key: 'm', offset: 7, node: <b>|</b> }];
    const { container, rerender } = render(<Markdown text="one two" marks={mark} />);
    rerender(<Markdown text="one two three" marks={mark} />);
    expect(flat(container)).toBe('one two| three');
    rerender(<Markdown text={'one two three\n\nfour'} marks={mark} />);
    expect(flat(container)).toBe('one two| threefour');
    rerender(<Markdown text={'one two three\n\nfour'} />);
    expect(flat(container)).toBe('one two threefour');
  });
});
