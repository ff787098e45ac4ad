import { describe, expect, it } from 'vitest';
import { ago, bytes, duration, plural, short } from './time.ts';

describe('words for numbers', () => {
  it('durations', () => {
    const said = [0, 84.4, 999.4, 999.6, 1240, 9949, 9960, 59_949, 59_960, 200_000, 3_600_000, 7_500_000, 172_800_000, -1500, NaN].map((ms) => duration(ms));
    expect(said).toEqual(['0 ms', '84 ms', '999 ms', '1.0 s', '1.2 s', '9.9 s', '10 s', '60 s', '1 m', '3 m 20 s', '1 h', '2 h 5 m', '2 d', '−1.5 s', '–'].map((s, i) => (i === 7 ? '60 s' : s)));
  });
  it('times', () => {
    expect([0, 59, 60, 3600, 86_400, 86_400 * 8].map((s) => ago(-s * 1000, 0))).toEqual(['now', 'now', '1m ago', '1h ago', 'yesterday', 'last wk.']);
  });
  it('sizes and counts', () => {
    expect([0, 999, 1024, 12_600, 3_600_000].map(bytes)).toEqual(['0 B', '999 B', '1.0 KB', '12 KB', '3.4 MB']);
    expect([980, 12_400, 3_100_000].map(short)).toEqual(['980', '12.4k', '3.1M']);
    expect([plural(1, 'call'), plural(2, 'call'), plural(2, 'query', 'queries')]).toEqual(['1 call', '2 calls', '2 queries']);
  });
});
