(function () {
  "use strict";
  document.querySelectorAll("[data-traded]").forEach(function (box) {
    var told = JSON.parse(box.getAttribute("data-traded"));
    var number = box.querySelector("input[type=number]");
    var slide = box.querySelector("input[type=range]");
    var cells = box.querySelectorAll("td.picked");
    var span = Math.log(told.high / told.low);
    function show(target) {
      told.half_width.forEach(function (widths, i) {
        var at = widths.findIndex(function (h) { return h !== null && h <= target; });
        var text = at < 0 ? "over " + told.grid[told.grid.length - 1] : told.grid[at];
        cells[i].textContent = at === 0 ? text + " or less" : text;
      });
    }
    function three(value) {
      return Number(value.toPrecision(3));
    }
    slide.addEventListener("input", function () {
      number.value = three(told.low * Math.exp((slide.value / slide.max) * span));
      show(Number(number.value));
    });
    number.addEventListener("input", function () {
      var target = Number(number.value);
      if (!(target > 0)) { return; }
      slide.value = Math.max(0, Math.min(1, Math.log(target / told.low) / span)) * slide.max;
      show(target);
    });
    box.classList.add("live");
    number.dispatchEvent(new Event("input"));
  });
})();
