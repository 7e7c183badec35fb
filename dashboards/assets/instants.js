// "Inspect here" shows the group at the time under the pointer, or in the middle of the view.
(function () {
  var regroup = window.regroup;

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("[data-key=i]");
    var view = button && regroup.view();
    if (view) {
      var isInside = regroup.pointed > view.start && regroup.pointed < view.end;
      // A moving range is frozen, so that the instant stays in it.
      regroup.go({
        from: view.start,
        to: view.end,
        at: Math.round(isInside ? regroup.pointed : (view.start + view.end) / 2),
      });
    }
  });
})();
