// A grid that asks the server for its rows asks again when the page around it says that they have changed.
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
