import { describe, expect, it } from 'vitest';
import { proposed, travelOf } from './travel.ts';

const effects = [
  { toolCallId: 'a', toolName: 'pay', arguments: {}, effect: 'once', messageId: 'm1', reusable: true },
  { toolCallId: 'b', toolName: 'pay', arguments: {}, effect: 'once', messageId: 'm2', failed: true, reusable: true },
  { toolCallId: 'c', toolName: 'mail', arguments: {}, effect: 'once' },
];

describe('going back', () => {
  it('proposes that nothing happens twice, and that what failed is tried again', () => {
    expect(proposed(effects).again).toEqual({ a: 'recorded', b: 'run', c: 'run' });
  });
  it('asks for the results that are to be used again', () => {
    expect(travelOf('3', effects, proposed(effects))).toEqual({ checkpointId: '3', reuse: ['a'] });
    expect(travelOf('3', effects, { again: { a: 'recorded', b: 'recorded', c: 'recorded' }, onlyRecorded: false })).toEqual({ checkpointId: '3', reuse: ['a', 'b'] });
  });
  it('asks for none if all run again, or if there are none', () => {
    expect(travelOf('3', effects, { again: { a: 'run', b: 'run', c: 'run' }, onlyRecorded: false })).toEqual({ checkpointId: '3' });
    expect(travelOf('3', [], proposed([]))).toEqual({ checkpointId: '3' });
  });
  it('says no more if only recorded results count', () => {
    expect(travelOf('3', effects, { ...proposed(effects), onlyRecorded: true })).toEqual({ checkpointId: '3', onlyRecorded: true });
  });
});
