// A page that is made anew changes only what is new in it: whatever Dash is given whole, it builds again, and with that
// go the reader's focus, open tables, sorted grids and zoomed figures.
(function () {
  var regroup = window.regroup;
  var ROOT = ["components", "props", "children"];
  var MANY = 12;
  var shown = null;
  var place = null;

  function isObject(value) {
    return value !== null && typeof value === "object";
  }

  function same(one, other) {
    if (!isObject(one) || !isObject(other)) {
      return one === other;
    }
    var keys = Object.keys(one);
    return (
      Array.isArray(one) === Array.isArray(other) &&
      keys.length === Object.keys(other).length &&
      keys.every(function (key) {
        return key in other && same(one[key], other[key]);
      })
    );
  }

  function isComponent(node) {
    return isObject(node) && "props" in node && "type" in node && "namespace" in node;
  }

  // One can become the other without being built again.
  function alike(one, other) {
    if (!isComponent(one) || !isComponent(other)) {
      return !isObject(one) && one === other;
    }
    return one.type === other.type && one.namespace === other.namespace && same(one.props.id, other.props.id);
  }

  function alikeLists(one, other) {
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every(function (node, at) {
        return alike(node, other[at]);
      })
    );
  }

  // Appends to `changes` what turns the component `old` at `path` into `next`.
  function compare(old, next, path, changes) {
    var props = {};
    Object.keys(Object.assign({}, old.props, next.props)).forEach(function (key) {
      if (key !== "children" && !same(old.props[key], next.props[key])) {
        props[key] = next.props[key] === undefined ? null : next.props[key];
      }
    });
    var before = old.props.children;
    var after = next.props.children;
    var below = path.concat(["props", "children"]);
    var inside = [];
    if (alikeLists(before, after)) {
      before.forEach(function (node, at) {
        if (isComponent(node)) {
          compare(node, after[at], below.concat([at]), inside);
        }
      });
    } else if (isComponent(before) && alike(before, after)) {
      compare(before, after, below, inside);
    } else if (!same(before, after)) {
      props.children = after === undefined ? null : after;
    }
    if (old.type === "Tbody" && inside.length > MANY) {
      // Rows have moved: to build them again is less work than to change every cell.
      props.children = after;
      inside = [];
    }
    if (Object.keys(props).length) {
      changes.push([path, props]);
    }
    Array.prototype.push.apply(changes, inside);
  }

  function pathOf(id) {
    var children = window.dash_component_api.getLayout(ROOT);
    return ROOT.concat([
      children.findIndex(function (child) {
        return child.props.id === id;
      }),
    ]);
  }

  // `made`: the page as the server made it.
  regroup.update = function (made) {
    if (!made) {
      return;
    }
    var page = { type: "Main", namespace: "", props: { children: made } };
    var path = pathOf("page");
    var changes = [];
    if (shown && place === window.location.pathname) {
      compare(shown, page, path, changes);
    } else {
      changes.push([path, { children: made }]);
    }
    shown = page;
    place = window.location.pathname;
    changes.forEach(function (change) {
      window.dash_clientside.set_props(change[0], change[1]);
    });
  };

  window.dash_clientside = Object.assign(window.dash_clientside || {}, { regroup: { update: regroup.update } });
})();
