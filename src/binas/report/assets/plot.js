// One figure on a page of its own.

function frontierFigure(data) {
  const { accuracies } = data.frontier, cost = data.costs[data.cost];
  const draw = (frame) => {
    drawFrontier(data, frame);
    for (const { x, i } of visible(data, frame)) {
      mark(frame, 0, x, frame.y(accuracies[i]), 3, "line dot c0",
        `${networkAt(data, i)}: ${percent(accuracies[i], 4)}, ${quantity(data.frontier.costs[i], cost)}`);
    }
  };
  const figure = plot({ label: `Accuracy against ${data.cost}`, height: 460, ...frontierAxes(data), draw });
  return card(el("figure", {}, figure, frontierLegend(data)));
}

function buildPlot(data) {
  document.getElementById("main").append(data.frontier ? frontierFigure(data) : verificationSection(data));
  document.getElementById("footer").append(`Made by ${data.tool}. The numbers are in this page; nothing is loaded.`);
}

themes();
buildPlot(numbersOfPage());
