// Not a module, so that it runs before the first paint and nothing flashes.
try {
  const { theme, density } = JSON.parse(localStorage.getItem('holdfast.preferences') ?? '{}');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  if (density === 'compact') document.documentElement.dataset.density = density;
} catch {
  // No storage, or not ours: as the system has it.
}
