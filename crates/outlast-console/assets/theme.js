// Applies the chosen theme before the first paint. Not a module, because modules run later.
(() => {
  document.documentElement.setAttribute("data-local-script", "");
  const theme = localStorage.getItem("outlast-theme");
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  }
})();
