import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPlace, pages, parsePlace, type Place } from './place.ts';

describe('places', () => {
  const known: [string, Place][] = [
    ['#/', { page: 'thread' }],
    ['#/?agent=demo', { page: 'thread', agent: 'demo' }],
    ['#/threads/t1', { page: 'thread', thread: 't1' }],
    ['#/threads/a%2Fb/runs/r1?at=3-14&tab=state', { page: 'thread', thread: 'a/b', run: 'r1', at: '3-14', tab: 'state' }],
    ['#/threads/t1?user=alice&with=t2', { page: 'thread', thread: 't1', user: 'alice', more: { with: 't2' } }],
    ['#/questions', { page: 'questions' }],
    ['#/operate', { page: 'operate' }],
    ['#/operate/tools', { page: 'operate', section: 'tools' }],
  ];
  for (const [hash, place] of known) {
    it(`reads and writes ${hash}`, () => {
      expect(parsePlace(hash)).toEqual(place);
      expect(formatPlace(place)).toBe(hash);
    });
  }

  it('reads what people type', () => {
    expect(parsePlace('')).toEqual({ page: 'thread' });
    expect(parsePlace('#/threads/100%')).toEqual({ page: 'thread', thread: '100%' });
    expect(parsePlace('#/settings')).toEqual({ page: 'operate', section: 'settings' });
    expect(parsePlace('#/threads')).toEqual({ page: 'thread' });
  });

  it('knows when nothing is at an address, and keeps it', () => {
    const lost: Place = { page: 'lost', section: 'nowhere/at/all' };
    expect(parsePlace('#/nowhere/at/all')).toEqual(lost);
    expect(formatPlace(lost)).toBe('#/nowhere/at/all');
  });

  it('comes back from every place', () => {
    const id = fc.option(fc.string({ unit: 'grapheme', minLength: 1 }).filter((s) => s.isWellFormed()), { nil: undefined });
    const place = fc.record({ page: fc.constantFrom(...pages), thread: id, run: id, at: id, tab: id, agent: id, user: id, section: id });
    fc.assert(fc.property(place, (p) => {
      const kept: Place = { ...p };
      if (p.page !== 'thread') delete kept.thread;
      if (p.page !== 'operate') delete kept.section;
      if (!kept.thread) delete kept.run;
      expect(parsePlace(formatPlace(p))).toEqual(JSON.parse(JSON.stringify(kept)));
    }));
  });

  it('never throws', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (s) => parsePlace(`#${s}`).page.length > 0));
  });
});
