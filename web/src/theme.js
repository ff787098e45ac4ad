// Not a module, so that it runs before the first paint and the page does not flash.
{
  const theme = localStorage.getItem('holdfast.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
}
