// What stands under the steps that differ.
const folds = [...document.querySelectorAll('details[id^="steps-"]')];
const said = folds.filter(fold => fold.textContent.includes('nothing here proves it'));
const captions = said.flatMap(fold => [...fold.querySelectorAll('caption')]);
return {
    explained: said.map(fold => fold.querySelector('summary').textContent),
    counters: captions.filter(it => it.textContent.includes('counters of the DBMS')).length,
    hasSettings: document.querySelector('#server-settings').textContent.includes('io_capacity'),
    sentence: said[0].querySelector('li').textContent,
};
