import { Suspense } from 'react';
import { later } from './later.tsx';
import { Skeleton } from './Spinner.tsx';

interface Sides<T> {
  before: T;
  after: T;
  label: string;
}

const JsonDiffView = later<Sides<unknown>>(() => import('./diffs.tsx').then((m) => ({ default: m.JsonDiffView })));
const TextDiffView = later<Sides<string>>(() => import('./diffs.tsx').then((m) => ({ default: m.TextDiffView })));

/** The differences between two JSON values. */
export function JsonDiff(props: Sides<unknown>) {
  return <Suspense fallback={<Skeleton />}><JsonDiffView {...props} /></Suspense>;
}

/** The differences between two texts, line by line. */
export function TextDiff(props: Sides<string>) {
  return <Suspense fallback={<Skeleton />}><TextDiffView {...props} /></Suspense>;
}
