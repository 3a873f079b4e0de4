// What is folded, as it is opened, printed, linked to and searched. The body of a function in the page.
const pause = () => new Promise(done => setTimeout(done, 100));
const folds = [...document.querySelectorAll("#steps > details")];
const cells = fold => fold.querySelectorAll("td").length;
const answer = { closed: folds.map(cells).reduce((a, b) => a + b) };
// Printing does not wait for anything.
folds[0].open = true;
dispatchEvent(new Event("beforeprint"));
answer.printedCharts = folds[0].querySelectorAll(".plot svg").length;
answer.plots = folds[0].querySelectorAll(".plot").length;
dispatchEvent(new Event("afterprint"));
// A link to something inside.
const id = /<figure[^>]* id="([^"]+)"/.exec(folds[1].querySelector("noscript").textContent)[1];
openFor(`#${id}`);
answer.linked = folds[1].open && document.getElementById(id) !== null;
// A link to a section that is rarely read.
const whole = document.getElementById("host-all");
answer.closedFirst = !whole.open;
openFor("#host");
answer.sectionOpened = whole.open && whole.closest("section").id === "host";
await pause();
answer.opened = cells(folds[1]);
answer.sorts = folds[1].querySelectorAll("th button.sort").length;
// The search of a browser finds what is in the page: in a while that is everything.
for (let tries = 0; tries < 100 && document.querySelector("details noscript"); tries++) await pause();
answer.leftAsText = document.querySelectorAll("details noscript").length;
answer.emptyFolds = folds.filter(fold => !fold.open && !cells(fold)).length;
return answer;
