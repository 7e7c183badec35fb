// Narrow screens show the places, the search and the tools only after a press on "Menu".
(function () {
  var regroup = window.regroup;

  function menu() {
    return document.getElementById("menu");
  }

  regroup.openMenu = function (isOpen) {
    var button = menu();
    if (button) {
      button.setAttribute("aria-expanded", String(isOpen));
      button.parentElement.toggleAttribute("data-menu", isOpen);
    }
  };

  document.addEventListener("click", function (event) {
    if (!event.target.closest) {
      return;
    }
    if (event.target.closest("#menu")) {
      regroup.openMenu(menu().getAttribute("aria-expanded") !== "true");
    } else if (event.target.closest("#places a, #page")) {
      regroup.openMenu(false);
    }
  });
})();
