// A grid with rows from the server requests them again when `data-made` of the page around it changes.
(function () {
  new MutationObserver(function (changes) {
    changes.forEach(function (change) {
      var grid = change.target.querySelector(".grid");
      var there = grid && window.dash_ag_grid && window.dash_ag_grid.getApi(grid.id);
      if (there) {
        there.refreshInfiniteCache();
      }
    });
  }).observe(document.documentElement, { subtree: true, attributes: true, attributeFilter: ["data-made"] });
})();
