// The questions and their forms, which are loaded with the first question.
import { Suspense } from 'react';
import { later } from '../ui/later.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import type { AskPanelProps } from './AskPanel.tsx';

const Panel = later<AskPanelProps>(() => import('./AskPanel.tsx').then((m) => ({ default: m.AskPanel })));

export function Ask(props: AskPanelProps) {
  return <Suspense fallback={<Skeleton lines={2} label="Loading the question" />}><Panel {...props} /></Suspense>;
}
