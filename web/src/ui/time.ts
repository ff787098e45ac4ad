// Times and durations in words, the same everywhere.

const units: [Intl.RelativeTimeFormatUnit, number][] = [['year', 31_536_000], ['month', 2_592_000], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60]];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' });

/** "now", "5m ago", "yesterday": what a glance needs. */
export function ago(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  const unit = units.find(([, size]) => Math.abs(seconds) >= size);
  return unit ? relative.format(Math.round(seconds / unit[1]), unit[0]) : 'now';
}

const exact = new Intl.DateTimeFormat('en', { year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 });

/** The time to the millisecond, where the browser is. */
export const exactTime = (at: number): string => exact.format(at);

/** "84 ms", "1.2 s", "3 m 20 s", "2 h 5 m". */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)} m ${whole % 60} s` : `${whole / 60} m`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 2880) return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} m` : `${minutes / 60} h`;
  return `${Math.round(minutes / 1440)} d`;
}

/** "980 B", "12 KB", "3.4 MB". */
export function bytes(n: number): string {
  const names = ['B', 'KB', 'MB', 'GB', 'TB'];
  let at = 0;
  while (n >= 999.5 && at < names.length - 1) {
    n /= 1024;
    at++;
  }
  return `${at > 0 && n < 9.95 ? n.toFixed(1) : Math.round(n)} ${names[at]}`;
}

/** "1,204". */
export const count = (n: number): string => n.toLocaleString('en');

/** "980", "12.4k", "3.1M": where there is little room. */
export const short = (n: number): string => new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(n).replace('K', 'k');

/** "1 call", "2 calls". */
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
