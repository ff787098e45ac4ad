// The banner over a conversation that is looked at as it was.
import type { ReactNode } from 'react';
import { Button, IconButton } from '../ui/Button.tsx';
import { ChevronLeftIcon, ChevronRightIcon, HistoryIcon } from '../ui/icons.tsx';
import { Time } from '../ui/Time.tsx';
import './AtPosition.css';

export interface AtPositionProps {
  /** The place that is looked at: "step 3 of 7". */
  what: string;
  /** Its state: "Ready for iteration 2". */
  title?: string;
  at?: string | number;
  onPrevious?: () => void;
  onNext?: () => void;
  onNow: () => void;
  /** The actions from here. */
  children?: ReactNode;
}

/** "You are looking at step 3 of 7", and the way back to now. */
export function AtPositionBanner({ what, title, at, onPrevious, onNext, onNow, children }: AtPositionProps) {
  return (
    <section className="durable-banner" aria-label="A look at the past">
      <div className="durable-banner-inner">
        <HistoryIcon />
        <p className="durable-banner-text">
          You are looking at <b className="num">{what}</b>{title && `: ${title}`}
          {at !== undefined && <span className="faint"> · <Time at={at} /></span>}
        </p>
        <div className="row">
          {(onPrevious || onNext) && (
            <>
              <IconButton size="small" label="Previous checkpoint" keys="[" disabled={!onPrevious} onClick={onPrevious}><ChevronLeftIcon /></IconButton>
              <IconButton size="small" label="Next checkpoint" keys="]" disabled={!onNext} onClick={onNext}><ChevronRightIcon /></IconButton>
            </>
          )}
          {children}
          <Button size="small" kind="primary" onClick={onNow}>Back to now</Button>
        </div>
      </div>
    </section>
  );
}
