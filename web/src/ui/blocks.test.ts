import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blocksOf, type Blocks } from './blocks.ts';

const shape = (b: Blocks) => b.list.map(({ raw, kind, level }) => ({ raw, kind, level }));

const pieces = ['# A title\n', 'Some *text* here', '\n', '\n\n', '- one\n', '- two\n', '  - inner\n', '1. first\n', '> quoted\n', '```js\n', 'let x = 1;\n', '```\n', '| a | b |\n', '|---|---|\n', '| 1 | 2 |\n', '---\n', '===\n', '**bold', '**', '[link](https://x.example)', '<b>html</b>\n', '    indented\n', '\r\n', '[r]: https://r.example\n', '\t'];

describe('blocks', () => {
  it('are the same however the text came', () => {
    fc.assert(fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 30 }), (parts) => {
      let text = '';
      let grown: Blocks | undefined;
      for (const part of parts) {
        text += part;
        grown = blocksOf(text, grown);
      }
      expect(shape(grown ?? blocksOf(''))).toEqual(shape(blocksOf(text)));
    }), { numRuns: 300 });
  });

  it('keep what cannot change', () => {
    const before = blocksOf('# A\n\nfirst\n\nsecond');
    const after = blocksOf('# A\n\nfirst\n\nsecond and more', before);
    expect(after.list[0]).toBe(before.list[0]);
    expect(after.list.at(-1)?.raw).toBe('second and more');
  });

  it('are made again when the text is another one', () => {
    expect(shape(blocksOf('other', blocksOf('# A\n\nfirst')))).toEqual(shape(blocksOf('other')));
  });

  it('leave no level of headings out', () => {
    expect(blocksOf('#### deep\n\n###### deeper\n\n# top\n\n### third').list.filter((b) => b.level).map((b) => b.level)).toEqual([1, 2, 1, 2]);
  });

  const hostile: Record<string, string> = {
    quotes: `${'>'.repeat(5000)} x`, lists: Array.from({ length: 400 }, (_, i) => `${' '.repeat(i * 2)}- x`).join('\n'), 'lists in a line': `${'- '.repeat(3000)}x`,
    brackets: '['.repeat(20_000), stars: '*a'.repeat(10_000), underscores: '_'.repeat(20_000), backticks: '`'.repeat(20_001), 'a long paragraph': 'word '.repeat(50_000), links: '[a]('.repeat(5000), images: '![a]('.repeat(5000),
  };
  for (const [name, text] of Object.entries(hostile)) {
    it(`show ${name} without limit as they were written`, () => {
      const { list } = blocksOf(text);
      expect(list.map((b) => b.raw).join('')).toBe(text);
    });
  }
});
