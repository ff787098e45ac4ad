// Not a module: it runs before the first paint, so that the page does not flash.
{
  const theme = localStorage.getItem('holdfast.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
}
