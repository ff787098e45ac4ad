// Icons: 16 by 16, one line width, in the colour of the text. They say nothing to screen
// readers: what they stand beside or in does.
import type { ReactNode } from 'react';

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

const icon = (...paths: string[]) => function Drawn() {
  return <Icon>{paths.map((d) => <path key={d} d={d} />)}</Icon>;
};

export const PlusIcon = icon('M8 3v10M3 8h10');
export const MinusIcon = icon('M3 8h10');
export const CloseIcon = icon('m4 4 8 8M12 4l-8 8');
export const CheckIcon = icon('m3 8.5 3.2 3L13 4.5');
export const CopyIcon = icon('M6 5.5h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1Z', 'M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1H5');
export const ChevronRightIcon = icon('m6 3.5 4.5 4.5L6 12.5');
export const ChevronLeftIcon = icon('M10 3.5 5.5 8l4.5 4.5');
export const ChevronDownIcon = icon('m3.5 6 4.5 4.5L12.5 6');
export const ChevronUpIcon = icon('M3.5 10 8 5.5l4.5 4.5');
export const SearchIcon = icon('M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10Z', 'm10.7 10.7 3.1 3.1');
export const MoreIcon = icon('M3.3 7.7h.4v.6h-.4zM7.8 7.7h.4v.6h-.4zM12.3 7.7h.4v.6h-.4z');
export const SendIcon = icon('M8 13V3.5', 'M3.8 7.5 8 3.2l4.2 4.3');
export const StopIcon = icon('M5 4h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1Z');
export const PlayIcon = icon('M5 3.3v9.4L12.5 8 5 3.3Z');
export const PauseIcon = icon('M5.5 3.5v9M10.5 3.5v9');
export const RetryIcon = icon('M13 3v3.5H9.5', 'M12.7 6.5A5.2 5.2 0 1 0 13.2 9');
export const EditIcon = icon('m10.7 3 2.3 2.3L6 12.3l-3 .7.7-3L10.7 3Z');
export const TrashIcon = icon('M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5 5 13h6l.5-8.5M6.8 7v3.5M9.2 7v3.5');
export const BranchIcon = icon('M4.5 5.5v5M4.5 5.5a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2ZM4.5 13.7a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2ZM11.5 5.5a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2ZM11.5 5.5c0 3-3.5 2.5-6.5 5');
export const RewindIcon = icon('M7.5 4 3.5 8l4 4V4ZM13 4 9 8l4 4V4Z');
export const HistoryIcon = icon('M2.5 3v3.5H6', 'M2.8 6.5A5.5 5.5 0 1 1 2.6 9', 'M8 5v3.2l2.2 1.3');
export const PanelLeftIcon = icon('M3.5 3h9A1.5 1.5 0 0 1 14 4.5v7a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 11.5v-7A1.5 1.5 0 0 1 3.5 3ZM6 3v10');
export const PanelRightIcon = icon('M3.5 3h9A1.5 1.5 0 0 1 14 4.5v7a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 11.5v-7A1.5 1.5 0 0 1 3.5 3ZM10 3v10');
export const QuestionIcon = icon('M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z', 'M6.3 6.2A1.8 1.8 0 0 1 8 5c1 0 1.8.7 1.8 1.6 0 1.2-1.8 1.4-1.8 2.6M8 11.2h.01');
export const GaugeIcon = icon('M2.5 11.5a6 6 0 1 1 11 0', 'm8 9.5 2.5-3');
export const SettingsIcon = icon('M2.5 5h5M11.5 5h2M2.5 11h2M8.5 11h5M9.5 6.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6ZM6.5 12.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z');
export const ToolIcon = icon('M9.8 6.2 13.6 2.4a3.6 3.6 0 0 1-4.7 4.7L4.3 11.7a1.4 1.4 0 0 1-2-2l4.6-4.6a3.6 3.6 0 0 1 4.7-4.7L9 3.2l.8 3Z');
export const BrainIcon = icon('M8 2.5v11M8 4a2 2 0 0 0-3.8.6A2.2 2.2 0 0 0 3 8.5 2.3 2.3 0 0 0 4.8 12 2 2 0 0 0 8 12.5M8 4a2 2 0 0 1 3.8.6A2.2 2.2 0 0 1 13 8.5 2.3 2.3 0 0 1 11.2 12 2 2 0 0 1 8 12.5');
export const KeyIcon = icon('M5.5 13a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM7.3 8.7 12.5 3.5M10.5 5.5l1.8 1.8');
export const WarningIcon = icon('M8 2.5 14 13H2L8 2.5Z', 'M8 6.5v3M8 11.3h.01');
export const InfoIcon = icon('M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z', 'M8 7.3v3.5M8 5h.01');
export const BoltIcon = icon('M9 1.8 3.5 9H8l-1 5.2L12.5 7H8l1-5.2Z');
export const ClockIcon = icon('M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z', 'M8 5v3.2l2.2 1.3');
export const DownloadIcon = icon('M8 2.5v7.5M4.8 7.2 8 10.3l3.2-3.1M3 13.2h10');
export const UploadIcon = icon('M8 10.3V2.8M4.8 5.8 8 2.7l3.2 3.1M3 13.2h10');
export const AttachIcon = icon('m13 7.3-5.2 5.2a3.2 3.2 0 0 1-4.6-4.6l5.4-5.3a2.1 2.1 0 0 1 3 3L6.4 10.9a1 1 0 0 1-1.5-1.5L9.5 5');
export const LinkIcon = icon('M6.7 9.3a2.7 2.7 0 0 0 3.9 0l2-2a2.7 2.7 0 0 0-3.9-3.9l-.6.6M9.3 6.7a2.7 2.7 0 0 0-3.9 0l-2 2a2.7 2.7 0 0 0 3.9 3.9l.6-.6');
export const ExternalIcon = icon('M9.5 3H13v3.5M13 3 7.5 8.5M11.5 9v3a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V5.5a1 1 0 0 1 1-1h3');
export const FilterIcon = icon('M2.5 4h11M4.5 8h7M6.5 12h3');
export const CommandIcon = icon('M6 6h4v4H6V6ZM6 6H4.5A1.5 1.5 0 1 1 6 4.5V6ZM10 6V4.5A1.5 1.5 0 1 1 11.5 6H10ZM10 10h1.5a1.5 1.5 0 1 1-1.5 1.5V10ZM6 10v1.5A1.5 1.5 0 1 1 4.5 10H6Z');
export const PinIcon = icon('M6 2.5h4M6.5 2.5v4L4.5 9h7l-2-2.5v-4M8 9v4.5');
export const EyeIcon = icon('M1.8 8S4 3.8 8 3.8 14.2 8 14.2 8 12 12.2 8 12.2 1.8 8 1.8 8Z', 'M8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z');
export const TerminalIcon = icon('m3 4.5 3.5 3.5L3 11.5M8 12h5');
export const ServerIcon = icon('M3.5 2.5h9a1 1 0 0 1 1 1v3a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1v-3a1 1 0 0 1 1-1ZM3.5 8.5h9a1 1 0 0 1 1 1v3a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1v-3a1 1 0 0 1 1-1ZM5 5h.01M5 11h.01');
