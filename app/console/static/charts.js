// Draws the charts of a page with uPlot, in the colours of the theme.

function draw(place) {
  const { title, hours, series } = JSON.parse(place.dataset.chart);
  place.replaceChildren();
  const axis = { stroke: probe("--quiet"), grid: { stroke: probe("--line"), width: 1 } };
  const clock = (at) => new Date(at * 1000).toLocaleTimeString(document.documentElement.lang, { timeStyle: "short" });
  const times = { ...axis, values: (chart, ticks) => ticks.map(clock), space: 70 };
  const lines = series.map(([label], at) => ({
    label,
    stroke: probe(["--accent", "--warn", "--quiet"][at]),
    width: 2,
    dash: [[], [6, 3], [2, 3]][at],
  }));
  new uPlot(
    { width: place.clientWidth || 320, height: 180, series: [{}, ...lines], axes: [times, axis], cursor: { show: false }, legend: { live: false } },
    [hours, ...series.map(([, values]) => values)],
    place,
  );
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", title);
}

// A canvas does not know light-dark(): an element's computed colour is one that it knows.
function probe(name) {
  const mark = document.createElement("span");
  mark.className = `colour${name}`;
  document.body.append(mark);
  const found = getComputedStyle(mark).color;
  mark.remove();
  return found;
}

const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);
drawAll();
addEventListener("resize", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "main") drawAll();
});
