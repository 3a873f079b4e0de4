//! Turns parameters of a workload file into sources of values.

use std::collections::BTreeMap;
use std::path::Path;

use rqps_model::script::{Freshness, SourceValues, ValueSource, ValueSpread};
use rqps_model::sql_workload::{Amount, CountOrRange, SqlParameter, SqlShape};

/// Kinds of parameters, with their keys.
const KINDS: &[(&str, &[&str])] = &[
    ("uniform", &["from", "to"]),
    ("zipfian", &["from", "to", "exponent", "scramble"]),
    ("pareto", &["from", "to", "h"]),
    ("special", &["from", "to"]),
    ("gaussian", &["from", "to", "parameter"]),
    ("exponential", &["from", "to", "parameter"]),
    ("sequential", &["from", "to", "wrap"]),
    ("list", &["values", "weights"]),
    ("file", &["csv", "column", "weight_column", "order", "row"]),
    ("text", &["length", "alphabet", "template"]),
    ("float", &["from", "to", "digits"]),
    ("date", &["from", "to"]),
    ("timestamp", &["from", "to", "step"]),
    ("same", &["of", "plus"]),
    ("latest", &["of", "exponent"]),
    ("client", &[]),
];

/// Keys of every kind.
const SHARED: [&str; 6] = ["kind", "each", "count", "distinct", "null", "type"];

/// Most values that one parameter draws at once.
const MOST_VALUES: u32 = 10_000;

/// All sources, each after the one that it copies, and the index of each name.
pub(super) struct NamedSources {
    pub(super) sources: Vec<ValueSource>,
    pub(super) numbers: BTreeMap<String, u32>,
    /// First slot by source.
    pub(super) slots: Vec<u32>,
}

impl NamedSources {
    pub(super) fn of(shape: &SqlShape) -> Result<NamedSources, String> {
        let mut named =
            NamedSources { sources: Vec::new(), numbers: BTreeMap::new(), slots: Vec::new() };
        let mut slot = 0;
        for name in order(&shape.parameter)? {
            let parameter = &shape.parameter[name];
            let source = named
                .source(shape, name, parameter)
                .map_err(|why| format!("{}parameter `{name}`: {why}", parameter.at.prefix()))?;
            named.numbers.insert(name.clone(), named.sources.len() as u32);
            named.slots.push(slot);
            slot += source.count;
            named.sources.push(source);
        }
        for name in shape.statements().flat_map(|statement| &statement.into) {
            named.reply(shape, name, &mut slot)?;
        }
        Ok(named)
    }

    /// Adds a name that gets its value from the row of a statement.
    fn reply(&mut self, shape: &SqlShape, name: &str, slot: &mut u32) -> Result<(), String> {
        let fault = |why: &str| Err(format!("`into = [\"{name}\"]`: {why}"));
        if let Err(why) = check_name(name) {
            return fault(&why);
        }
        if shape.parameter.contains_key(name) {
            return fault("a parameter has that name");
        }
        if self.numbers.contains_key(name) {
            // Another event has the same name.
            return Ok(());
        }
        self.numbers.insert(name.to_owned(), self.sources.len() as u32);
        self.slots.push(*slot);
        *slot += 1;
        self.sources.push(ValueSource {
            name: name.to_owned(),
            values: SourceValues::Reply,
            freshness: Freshness::Reply,
            count: 1,
            distinct: false,
            nulls: 0.0,
        });
        Ok(())
    }

    /// The source of a name that gets its value from the row of a statement.
    pub(super) fn is_reply(&self, name: &str) -> bool {
        let source = self.numbers.get(name).map(|number| &self.sources[*number as usize]);
        source.is_some_and(|source| source.freshness == Freshness::Reply)
    }

    fn source(
        &self,
        shape: &SqlShape,
        name: &str,
        parameter: &SqlParameter,
    ) -> Result<ValueSource, String> {
        check_name(name)?;
        check_keys(parameter)?;
        let folder = shape.load.as_ref().and_then(|load| load.folder.as_deref());
        let reader = ParameterReader { parameter, variables: Variables(&shape.variables), folder };
        let values = reader.values(self)?;
        let freshness = match (&values, parameter.each.as_deref()) {
            (SourceValues::Same { of, .. }, None) => self.sources[*of as usize].freshness,
            (SourceValues::Same { .. }, Some(_)) => {
                return Err("`each` is that of the parameter that it copies".to_owned());
            }
            (_, None | Some("event")) => Freshness::Event,
            (_, Some("use")) => Freshness::Use,
            (_, Some("client")) => Freshness::Client,
            (_, Some(other)) => {
                return Err(format!("`each` must be event, use or client, not `{other}`"));
            }
        };
        let (count, nulls) = (parameter.count.unwrap_or(1), parameter.null.unwrap_or(0.0));
        if !(1..=MOST_VALUES).contains(&count) {
            return Err(format!("`count` must be from 1 to {MOST_VALUES}, not {count}"));
        }
        if !(0.0..=1.0).contains(&nulls) {
            return Err(format!("`null` must be from 0 to 1, not {nulls}"));
        }
        let distinct = parameter.distinct.unwrap_or(false);
        if let SourceValues::Whole { from, to, .. } = &values
            && distinct
            && (to.wrapping_sub(*from) as u64) < u64::from(count - 1)
        {
            return Err(format!("{count} distinct values do not fit from {from} to {to}"));
        }
        let name = name.to_owned();
        Ok(ValueSource { name, values, freshness, count, distinct, nulls })
    }
}

/// Names in alphabetical order, but a copy after its original.
fn order(parameters: &BTreeMap<String, SqlParameter>) -> Result<Vec<&String>, String> {
    let mut done: Vec<&String> = Vec::new();
    let mut left: Vec<&String> = parameters.keys().collect();
    while !left.is_empty() {
        let is_ready = |name: &&String| match (&*parameters[*name].kind, &parameters[*name].of) {
            ("same" | "latest", Some(of)) => done.contains(&of) || !parameters.contains_key(of),
            _ => true,
        };
        let (ready, rest): (Vec<&String>, Vec<&String>) = left.iter().partition(|n| is_ready(n));
        if ready.is_empty() {
            let at = parameters[rest[0]].at.prefix();
            return Err(format!(
                "{at}parameter `{}`: it copies itself through other parameters",
                rest[0]
            ));
        }
        done.extend(ready);
        left = rest;
    }
    Ok(done)
}

fn check_name(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let is_word = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if begins && is_word {
        Ok(())
    } else {
        Err("a name consists of letters, digits and `_`, and does not begin with a digit"
            .to_owned())
    }
}

/// Refuses an unknown kind, and keys of other kinds.
fn check_keys(parameter: &SqlParameter) -> Result<(), String> {
    let kind = parameter.kind.as_str();
    let Some((_, keys)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
        return Err(format!("`{kind}` is not a kind of parameter; kinds are {}", known.join(", ")));
    };
    let Ok(serde_json::Value::Object(given)) = serde_json::to_value(parameter) else {
        return Err("its keys cannot be read".to_owned());
    };
    let is_known = |key: &str| keys.contains(&key) || SHARED.contains(&key);
    match given.keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => {
            let known: Vec<&str> = keys.iter().chain(&SHARED[1..]).copied().collect();
            Err(format!("`{key}` is not a key of {kind}; its keys are {}", known.join(", ")))
        }
    }
}

/// Reads the source of a parameter.
struct ParameterReader<'a> {
    parameter: &'a SqlParameter,
    variables: Variables<'a>,
    folder: Option<&'a Path>,
}

impl ParameterReader<'_> {
    fn values(&self, named: &NamedSources) -> Result<SourceValues, String> {
        let parameter = self.parameter;
        let other = || {
            let of = parameter
                .of
                .as_deref()
                .ok_or("the key `of` is missing; set it to the name of another parameter")?;
            let number = named.numbers.get(of).copied();
            number.ok_or(format!("there is no parameter `{of}`"))
        };
        Ok(match parameter.kind.as_str() {
            "sequential" => {
                let (from, to) = self.range()?;
                SourceValues::Sequential { from, to, wrap: parameter.wrap.unwrap_or(false) }
            }
            "list" => self.list()?,
            "file" => self.file()?,
            "text" => self.text()?,
            "float" => self.decimal()?,
            "date" => {
                let (from, to) = (self.day("from")?, self.day("to")?);
                ascending("date", from, to)?;
                SourceValues::Date { from, to }
            }
            "timestamp" => self.timestamp()?,
            "same" => {
                let plus = parameter.plus.as_ref().map(|plus| self.variables.whole(plus));
                SourceValues::Same { of: other()?, plus: plus.transpose()?.unwrap_or(0) }
            }
            "latest" => {
                let of = other()?;
                let SourceValues::Sequential { from, .. } = named.sources[of as usize].values
                else {
                    return Err("`of` must name a sequential parameter".to_owned());
                };
                if from < 2 {
                    return Err(format!(
                        "`of` begins at {from}, so at first no value is in the database: load rows \
                         with values from 1 on, and let its `from` be the next one"
                    ));
                }
                let exponent = within("exponent", parameter.exponent.unwrap_or(0.99), 0.0, 1000.0);
                SourceValues::Latest { of, exponent: exponent? }
            }
            "client" => SourceValues::Client,
            _ => {
                let (from, to) = self.range()?;
                SourceValues::Whole { from, to, spread: self.spread()? }
            }
        })
    }

    fn spread(&self) -> Result<ValueSpread, String> {
        let parameter = self.parameter;
        let shape = || parameter.parameter.ok_or("`parameter` is missing".to_owned());
        Ok(match parameter.kind.as_str() {
            "zipfian" => ValueSpread::Zipfian {
                exponent: within("exponent", parameter.exponent.unwrap_or(0.99), 0.0, 1000.0)?,
                scramble: parameter.scramble.unwrap_or(false),
            },
            "pareto" => {
                ValueSpread::Pareto { h: within("h", parameter.h.unwrap_or(0.2), 0.001, 0.999)? }
            }
            "special" => ValueSpread::Special,
            "gaussian" => {
                ValueSpread::Gaussian { parameter: within("parameter", shape()?, 2.0, 1000.0)? }
            }
            "exponential" => {
                ValueSpread::Exponential { parameter: within("parameter", shape()?, 1e-6, 700.0)? }
            }
            _ => ValueSpread::Uniform,
        })
    }

    fn range(&self) -> Result<(i64, i64), String> {
        let bound = |key: &str, amount: &Option<Amount>| {
            let amount = amount.as_ref().ok_or(format!("`{key}` is missing"))?;
            self.variables.whole(amount).map_err(|why| format!("`{key}`: {why}"))
        };
        let (from, to) = (bound("from", &self.parameter.from)?, bound("to", &self.parameter.to)?);
        if from <= to { Ok((from, to)) } else { Err(format!("`from` {from} is above `to` {to}")) }
    }

    fn list(&self) -> Result<SourceValues, String> {
        let values = self.parameter.values.as_deref().ok_or("`values` is missing")?;
        let weights = self.parameter.weights.clone().unwrap_or_default();
        if values.is_empty() {
            return Err("`values` is empty".to_owned());
        }
        if !weights.is_empty() && weights.len() != values.len() {
            let (weights, values) = (weights.len(), values.len());
            return Err(format!("there are {weights} weights for {values} values"));
        }
        let all: f64 = weights.iter().sum();
        let is_wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
        if !weights.is_empty() && (weights.iter().any(is_wrong) || all <= 0.0) {
            return Err("weights must not be below 0, and not all 0".to_owned());
        }
        let text = |value: &Amount| match value {
            Amount::Whole(number) => number.to_string(),
            Amount::Decimal(number) => number.to_string(),
            Amount::Text(text) => text.clone(),
        };
        let whole = values.iter().all(|value| matches!(value, Amount::Whole(_)));
        Ok(SourceValues::List { texts: values.iter().map(text).collect(), weights, whole })
    }

    fn file(&self) -> Result<SourceValues, String> {
        let parameter = self.parameter;
        let csv = parameter.csv.as_deref().ok_or("`csv` is missing")?;
        let column = parameter.column.clone().ok_or("`column` is missing")?;
        let sequential = match parameter.order.as_deref() {
            None | Some("random") => false,
            Some("sequential") => true,
            Some(other) => {
                return Err(format!("`order` must be random or sequential, not `{other}`"));
            }
        };
        Ok(SourceValues::File {
            path: self.folder.unwrap_or(Path::new("")).join(csv),
            column,
            weight_column: parameter.weight_column.clone(),
            sequential,
            row: parameter.row.clone(),
        })
    }

    fn text(&self) -> Result<SourceValues, String> {
        let parameter = self.parameter;
        if let Some(text) = &parameter.template {
            if parameter.length.is_some() || parameter.alphabet.is_some() {
                return Err("a `template` has neither `length` nor `alphabet`".to_owned());
            }
            return Ok(SourceValues::Template { text: text.clone() });
        }
        let length = parameter.length.ok_or("`length` or `template` is missing")?;
        let [least, most] = CountOrRange::bounds(length);
        if least > most || most > 1 << 24 {
            return Err(format!("`length` must ascend to at most {}", 1 << 24));
        }
        let alphabet = alphabet(parameter.alphabet.as_deref().unwrap_or("a-z0-9"))?;
        Ok(SourceValues::Text { least: least as u32, most: most as u32, alphabet })
    }

    fn decimal(&self) -> Result<SourceValues, String> {
        let bound = |key: &str, amount: &Option<Amount>| {
            let amount = amount.as_ref().ok_or(format!("`{key}` is missing"))?;
            self.variables.decimal(amount).map_err(|why| format!("`{key}`: {why}"))
        };
        let (from, to) = (bound("from", &self.parameter.from)?, bound("to", &self.parameter.to)?);
        let digits = self.parameter.digits.unwrap_or(2);
        if from > to {
            return Err(format!("`from` {from} is above `to` {to}"));
        }
        let largest = from.abs().max(to.abs()) * 10f64.powi(digits as i32);
        if digits > 15 || largest.is_nan() || largest > 9e18 {
            return Err("`digits` must be from 0 to 15, and the numbers fit 18 digits".to_owned());
        }
        Ok(SourceValues::Decimal { from, to, digits })
    }

    fn timestamp(&self) -> Result<SourceValues, String> {
        let second = |key: &str| {
            let text = self.moment(key)?;
            let (day, time) = text.split_once([' ', 'T']).unwrap_or((&text, "00:00:00"));
            let wrong = || format!("`{key}` must be written as 2024-02-29 12:00:00, not `{text}`");
            let day = day_number(day).ok_or_else(wrong)?;
            let mut parts = time.split(':').map(|part| part.parse::<i64>().ok());
            let mut part = |most| {
                let part = parts.next().unwrap_or(Some(0));
                part.filter(|part| (0..most).contains(part)).ok_or_else(wrong)
            };
            Ok::<i64, String>(day * 86_400 + part(24)? * 3600 + part(60)? * 60 + part(60)?)
        };
        let (from, to, step) = (second("from")?, second("to")?, self.parameter.step.unwrap_or(1));
        ascending("timestamp", from, to)?;
        if step < 1 {
            return Err(format!("`step` must be at least 1 second, not {step}"));
        }
        Ok(SourceValues::Timestamp { from, to, step })
    }

    fn day(&self, key: &str) -> Result<i64, String> {
        let text = self.moment(key)?;
        day_number(&text)
            .ok_or_else(|| format!("`{key}` must be written as 2024-02-29, not `{text}`"))
    }

    fn moment(&self, key: &str) -> Result<String, String> {
        let amount = if key == "from" { &self.parameter.from } else { &self.parameter.to };
        match amount {
            Some(Amount::Text(text)) => Ok(text.clone()),
            Some(_) => Err(format!("`{key}` must be a text such as \"2024-02-29\"")),
            None => Err(format!("`{key}` is missing")),
        }
    }
}

/// The value, if it is within its limits.
fn within(key: &str, value: f64, least: f64, most: f64) -> Result<f64, String> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("`{key}` must be from {least} to {most}, not {value}"))
    }
}

fn ascending(kind: &str, from: i64, to: i64) -> Result<(), String> {
    if from <= to { Ok(()) } else { Err(format!("the first {kind} is after the last")) }
}

/// Days from 1970-01-01 to a day such as `2024-02-29`, if it exists.
fn day_number(text: &str) -> Option<i64> {
    let date: jiff::civil::Date = text.parse().ok()?;
    let days = date.since(jiff::civil::date(1970, 1, 1)).ok()?.get_days();
    Some(i64::from(days))
}

/// The characters of an alphabet; `a-z` is a range.
fn alphabet(text: &str) -> Result<String, String> {
    let letters: Vec<char> = text.chars().collect();
    let (mut all, mut at) = (String::new(), 0);
    while at < letters.len() {
        match letters.get(at..at + 3) {
            Some([first, '-', last]) if first <= last => {
                all.extend(*first..=*last);
                at += 3;
            }
            Some([first, '-', last]) => {
                return Err(format!("`alphabet`: `{first}-{last}` is not an ascending range"));
            }
            _ => {
                all.push(letters[at]);
                at += 1;
            }
        }
    }
    if all.is_empty() { Err("`alphabet` is empty".to_owned()) } else { Ok(all) }
}

// Numbers of a workload file: literals, variables, sums and products.

/// The variables of a workload.
pub(super) struct Variables<'a>(pub(super) &'a BTreeMap<String, i64>);

impl Variables<'_> {
    /// A whole number.
    pub(super) fn whole(&self, amount: &Amount) -> Result<i64, String> {
        match amount {
            Amount::Whole(number) => Ok(*number),
            Amount::Decimal(number) => Err(format!("`{number}` is not a whole number")),
            Amount::Text(text) => self.formula(text),
        }
    }

    /// A number with or without a fraction.
    pub(super) fn decimal(&self, amount: &Amount) -> Result<f64, String> {
        match amount {
            Amount::Decimal(number) => Ok(*number),
            other => self.whole(other).map(|number| number as f64),
        }
    }

    fn formula(&self, text: &str) -> Result<i64, String> {
        // A minus at the beginning is a sign.
        let place = text.char_indices().skip(1).find(|(_, letter)| "*+-".contains(*letter));
        let Some((at, sign)) = place else { return self.term(text.trim()) };
        let (left, right) = (self.term(text[..at].trim())?, self.term(text[at + 1..].trim())?);
        let result = match sign {
            '*' => left.checked_mul(right),
            '+' => left.checked_add(right),
            _ => left.checked_sub(right),
        };
        result.ok_or_else(|| format!("`{text}` is out of the range of 64 bits"))
    }

    fn term(&self, text: &str) -> Result<i64, String> {
        if let Some(number) = self.0.get(text) {
            return Ok(*number);
        }
        text.replace('_', "").parse().map_err(|_| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "there are no [variables]".to_owned()
            } else {
                format!("variables are {}", known.join(", "))
            };
            format!("`{text}` is neither a whole number nor a variable; {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_variables_and_one_operation() {
        let variables = BTreeMap::from([("rows".to_owned(), 100)]);
        let value = |text: &str| Variables(&variables).whole(&Amount::Text(text.to_owned()));
        assert_eq!(value("rows"), Ok(100));
        assert_eq!(value("rows*10"), Ok(1000));
        assert_eq!(value("rows - 1"), Ok(99));
        assert_eq!(value("-5 + rows"), Ok(95));
        assert_eq!(value("1_000"), Ok(1000));
        let unknown = value("row").unwrap_err();
        assert_eq!(unknown, "`row` is neither a whole number nor a variable; variables are rows");
        assert!(value("9223372036854775807+1").unwrap_err().contains("64 bits"));
    }
}
