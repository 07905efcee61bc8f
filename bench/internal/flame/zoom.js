// A click on a frame makes it as wide as the graph; one on the frame at the bottom shows all again.
(function () {
  var svg = document.currentScript ? document.currentScript.parentNode : document.documentElement;
  var width = svg.viewBox.baseVal.width, frames = svg.querySelectorAll("g");
  function fitting(name, w) {
    var letters = Math.floor((w - 4) / 6.1);
    return letters < 3 ? "" : letters >= name.length ? name : name.slice(0, letters - 1) + "…";
  }
  function show(frame) {
    var x0 = +frame.dataset.x, w0 = +frame.dataset.w, level = +frame.dataset.l;
    frames.forEach(function (f) {
      var x = +f.dataset.x, w = +f.dataset.w, caller = +f.dataset.l < level;
      var over = x <= x0 + 0.01 && x + w >= x0 + w0 - 0.01;
      var inside = x >= x0 - 0.01 && x + w <= x0 + w0 + 0.01;
      f.style.display = (caller ? over : inside) ? "" : "none";
      var at = caller ? 0 : (x - x0) * width / w0, wide = caller ? width : w * width / w0;
      var rect = f.querySelector("rect"), text = f.querySelector("text");
      rect.setAttribute("x", at);
      rect.setAttribute("width", Math.max(wide - 0.5, 0.5));
      text.setAttribute("x", at + 2);
      text.textContent = fitting(text.dataset.n, wide);
    });
  }
  frames.forEach(function (f) {
    f.style.cursor = "pointer";
    f.addEventListener("click", function () { show(f); });
  });
})();
