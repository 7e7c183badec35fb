// Runs before the first paint: applies the stored choice, or else the system's theme.
(function () {
  var choice = null;
  try {
    choice = window.localStorage.getItem("regroup-theme");
  } catch (blocked) {
    // Storage may be blocked; then the system's theme applies.
  }
  if (choice === "light" || choice === "dark") {
    document.documentElement.setAttribute("data-theme", choice);
  }
})();
