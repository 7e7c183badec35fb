// Runs before anything is painted: the stored choice, if there is one, else the system's.
(function () {
  var choice = null;
  try {
    choice = window.localStorage.getItem("regroup-theme");
  } catch (blocked) {
    // Storage may be forbidden: the system's preference then holds.
  }
  if (choice === "light" || choice === "dark") {
    document.documentElement.setAttribute("data-theme", choice);
  }
})();
