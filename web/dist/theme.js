{
const theme = localStorage.getItem('holdfast.theme');
if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
}
