// "Inspect here" shows the group at the time under the pointer, or in the middle of the view. The slider moves it.
(function () {
  var regroup = window.regroup;

  // A moving range is frozen, so that the instant stays in it.
  function inspect(view, at) {
    regroup.go({ from: view.start, to: view.end, at: Math.round(at) });
  }

  document.addEventListener("input", function (event) {
    if (event.target.id === "instant") {
      regroup.cross(Number(event.target.value));
    }
  });

  document.addEventListener("change", function (event) {
    if (event.target.id === "instant") {
      inspect(regroup.view(), Number(event.target.value));
    }
  });

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("[data-key=i]");
    var view = button && regroup.view();
    if (view) {
      var isInside = regroup.pointed > view.start && regroup.pointed < view.end;
      inspect(view, isInside ? regroup.pointed : (view.start + view.end) / 2);
    }
  });
})();
