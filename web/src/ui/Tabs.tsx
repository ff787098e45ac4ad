import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';
import './Tabs.css';

export interface Tab<T extends string> {
  value: T;
  name: ReactNode;
  /** How many there are, beside the name. */
  count?: number;
  panel: ReactNode;
}

export interface TabsProps<T extends string> {
  label: string;
  value: T;
  tabs: readonly Tab<T>[];
  onChange: (value: T) => void;
  /** At the end of the row of tabs. */
  actions?: ReactNode;
}

/** Panels of which one is shown. Only that one is rendered. */
export function Tabs<T extends string>({ label, value, tabs, onChange, actions }: TabsProps<T>) {
  return (
    <Base.Root className="tabs" value={value} onValueChange={(next) => onChange(next as T)}>
      <div className="tabs-bar">
        <Base.List className="tabs-list" aria-label={label}>
          {tabs.map((tab) => (
            <Base.Tab key={tab.value} value={tab.value} className="tab">
              {tab.name}{' '}
              {tab.count !== undefined && <span className="tab-count num">{tab.count.toLocaleString('en')}</span>}
            </Base.Tab>
          ))}
        </Base.List>
        {actions && <div className="tabs-actions row">{actions}</div>}
      </div>
      {tabs.map((tab) => <Base.Panel key={tab.value} value={tab.value} className="tab-panel">{tab.panel}</Base.Panel>)}
    </Base.Root>
  );
}
