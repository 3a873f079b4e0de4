//! Draws the values of a script's sources: once per event, per use, or per client.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use super::values::{self, Choices, DrawnSequence, KeyDraws, KeyHistory, Spreading};
use rqps_model::datagen::distribution::{Zipfian, key_hash, printable};
use rqps_model::datagen::rng::Rng;
use rqps_model::script::{Freshness, Script, SourceValues, ValueSource};

/// Most draws in a row that repeat earlier values before a source fails.
const TRIES: u32 = 10_000;

/// The clients' shared part of a script's sources: lists and files are held once.
#[derive(Clone)]
pub struct SharedSources(Arc<Inner>);

struct Inner {
    sources: Vec<SharedSource>,
    clients: u32,
    slots: usize,
    /// Sequences whose latest values other sources draw.
    followed: Vec<usize>,
}

struct SharedSource {
    name: String,
    /// Index of its first parameter in the event.
    slot: usize,
    count: usize,
    distinct: bool,
    nulls: f64,
    freshness: Freshness,
    draws: Draws,
}

/// A way to make values.
enum Draws {
    Whole {
        from: i64,
        span: u64,
        spread: Spreading,
    },
    Sequential {
        from: i64,
        values: u64,
        wrap: bool,
    },
    /// A member of a list or a row of a file. Sources of one group share the row.
    Choice {
        choices: Choices,
        sequential: bool,
        group: Option<usize>,
        leads: bool,
    },
    Text {
        least: u32,
        most: u32,
        alphabet: Vec<char>,
    },
    Template {
        text: String,
    },
    Decimal {
        from: i64,
        span: u64,
        digits: u32,
    },
    Date {
        from: i64,
        span: u64,
    },
    Timestamp {
        from: i64,
        steps: u64,
        step: i64,
    },
    Same {
        slot: usize,
        plus: i64,
    },
    Client,
    /// The number of values: those of sequence `of`, and `before` values before it; at least 1.
    Latest {
        of: usize,
        before: u64,
        ranks: Zipfian,
    },
    /// A column of the reply to a statement.
    Reply,
    HashedKey {
        prefix: String,
        records: KeyDraws,
    },
    Printable {
        bytes: usize,
    },
}

/// The current value of a source, for one slot.
#[derive(Default)]
pub struct Drawn {
    /// The value, if it is not a text.
    pub value: DrawnValue,
    /// The text; otherwise empty, and kept for its allocation.
    pub text: Vec<u8>,
}

/// The kind of a value, or the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawnValue {
    /// NULL.
    #[default]
    Null,
    /// A whole number.
    Whole(i64),
    /// A text.
    Text,
}

impl SharedSources {
    /// Reads the files and prepares the distributions. The error is a complete message.
    pub fn open(script: &Script, clients: u32) -> Result<SharedSources, String> {
        let (mut sources, mut slot) = (Vec::new(), 0);
        let mut groups: BTreeMap<String, usize> = BTreeMap::new();
        for source in &script.sources {
            let draws = Draws::of(source, &sources, &mut groups)
                .map_err(|why| format!("failed to prepare parameter `{}`: {why}", source.name))?;
            sources.push(SharedSource {
                name: source.name.clone(),
                slot,
                count: source.count.max(1) as usize,
                distinct: source.distinct,
                nulls: source.nulls,
                freshness: source.freshness,
                draws,
            });
            slot += source.count.max(1) as usize;
        }
        let followed = sources.iter().filter_map(|source| source.draws.follows()).collect();
        let clients = clients.max(1);
        Ok(SharedSources(Arc::new(Inner { sources, clients, slots: slot, followed })))
    }

    /// Number of slots of all sources.
    pub fn slots(&self) -> usize {
        self.0.slots
    }

    /// The sources of client `client`, from 0.
    pub fn of_client(&self, seed: u64, client: u32) -> ClientSources {
        ClientSources {
            shared: Arc::clone(&self.0),
            rng: Rng::stream(seed, "values", u64::from(client)),
            client: u64::from(client),
            sequences: self.0.sources.iter().map(|_| DrawnSequence::default()).collect(),
            rows: vec![0; self.0.sources.len()],
        }
    }
}

/// The sources of one client.
pub struct ClientSources {
    shared: Arc<Inner>,
    rng: Rng,
    client: u64,
    /// By source.
    sequences: Vec<DrawnSequence>,
    /// By group: the current row of its sources.
    rows: Vec<usize>,
}

impl ClientSources {
    /// Draws the values that are drawn once per client.
    pub fn start(&mut self, drawn: &mut [Drawn]) -> Result<(), String> {
        let once = |source: &SharedSource| source.freshness == Freshness::Client;
        let sources = self.shared.sources.iter().enumerate();
        let all: Vec<u32> =
            sources.filter(|(_, one)| once(one)).map(|(index, _)| index as u32).collect();
        self.draw(&all, drawn)
    }

    /// Begins an attempt at an event.
    #[inline]
    pub fn begin(&mut self) {
        self.shared.followed.iter().for_each(|number| self.sequences[*number].begin());
    }

    /// Confirms that the last event was carried out.
    #[inline]
    pub fn confirm(&mut self) {
        self.shared.followed.iter().for_each(|number| self.sequences[*number].confirm());
    }

    /// Draws new values of these sources into their slots.
    #[inline]
    pub fn draw(&mut self, which: &[u32], drawn: &mut [Drawn]) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        for &number in which {
            let source = &shared.sources[number as usize];
            for at in 0..source.count {
                let mut tries = 0;
                loop {
                    self.draw_one(source, number as usize, source.slot + at, drawn)?;
                    if !source.distinct || is_new(&drawn[source.slot..=source.slot + at]) {
                        break;
                    }
                    tries += 1;
                    if tries == TRIES {
                        return Err(format!(
                            "parameter `{}` found no {} values that differ",
                            source.name, source.count
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn draw_one(
        &mut self,
        source: &SharedSource,
        number: usize,
        slot: usize,
        drawn: &mut [Drawn],
    ) -> Result<(), String> {
        if source.nulls > 0.0 && self.rng.unit() < source.nulls {
            drawn[slot].value = DrawnValue::Null;
            return Ok(());
        }
        let rng = &mut self.rng;
        let whole = match &source.draws {
            Draws::Whole { from, span, spread } => from.wrapping_add_unsigned(match spread {
                Spreading::Uniform => rng.below(span.wrapping_add(1)),
                other => other.draw(rng, *span),
            }),
            Draws::Sequential { from, values, wrap } => {
                let place = self.sequences[number].next();
                let step = self.client + place * u64::from(self.shared.clients);
                if step >= *values && !wrap {
                    let last = from.wrapping_add_unsigned(*values - 1);
                    return Err(format!("parameter `{}` has no value after {last}", source.name));
                }
                from.wrapping_add_unsigned(step % values)
            }
            Draws::Same { slot: other, plus } => match drawn[*other].value {
                DrawnValue::Whole(number) => number.wrapping_add(*plus),
                _ => {
                    drawn[slot].value = DrawnValue::Null;
                    return Ok(());
                }
            },
            Draws::Client => self.client as i64,
            Draws::Latest { of, before, ranks } => {
                let sequence = &self.sequences[*of];
                let rank = ranks.draw_of(rng, sequence.settled() + before) - 1;
                let Draws::Sequential { from, values, .. } = &self.shared.sources[*of].draws else {
                    return Err(format!("parameter `{}` follows no sequence", source.name));
                };
                match sequence.ranked(rank) {
                    Ok(place) => {
                        let step = self.client + place * u64::from(self.shared.clients);
                        from.wrapping_add_unsigned(step % values)
                    }
                    Err(back) => from.wrapping_sub_unsigned(1 + back % before),
                }
            }
            Draws::Reply => return Ok(()),
            _ => return self.draw_text(source, number, &mut drawn[slot]),
        };
        drawn[slot].value = DrawnValue::Whole(whole);
        Ok(())
    }

    fn draw_text(
        &mut self,
        source: &SharedSource,
        number: usize,
        drawn: &mut Drawn,
    ) -> Result<(), String> {
        drawn.value = DrawnValue::Text;
        drawn.text.clear();
        if let Draws::HashedKey { prefix, records } = &source.draws {
            let (client, clients) = (self.client, u64::from(self.shared.clients));
            let mut history = KeyHistory { client, clients, sequences: &mut self.sequences };
            let record = history.record(records, number, &mut self.rng);
            drawn.text.extend_from_slice(prefix.as_bytes());
            return write!(drawn.text, "{}", key_hash(record)).map_err(|error| error.to_string());
        }
        let (rng, out) = (&mut self.rng, &mut drawn.text);
        let below = |rng: &mut Rng, span: u64| rng.below(span.wrapping_add(1));
        let written = match &source.draws {
            Draws::Choice { choices, sequential, group, leads } => {
                let row = match (*group, *sequential) {
                    (Some(group), _) if !leads => self.rows[group],
                    (_, true) => {
                        let place = self.sequences[number].next();
                        let step = self.client + place * u64::from(self.shared.clients);
                        (step % choices.len() as u64) as usize
                    }
                    (_, false) => choices.draw(rng),
                };
                if let Some(group) = *group {
                    self.rows[group] = row;
                }
                if let Some(number) = choices.number(row) {
                    drawn.value = DrawnValue::Whole(number);
                    return Ok(());
                }
                out.extend_from_slice(choices.text(row).as_bytes());
                Ok(())
            }
            Draws::Text { least, most, alphabet } => {
                let length = rng.uniform(u64::from(*least), u64::from(*most));
                write_letters(rng, out, length, alphabet);
                Ok(())
            }
            Draws::Printable { bytes } => {
                out.resize(*bytes, 0);
                printable(rng, out);
                Ok(())
            }
            Draws::Template { text } => {
                out.extend(text.bytes().map(|byte| match byte {
                    b'#' => b'0' + rng.below(10) as u8,
                    b'@' => b'a' + rng.below(26) as u8,
                    other => other,
                }));
                Ok(())
            }
            Draws::Decimal { from, span, digits } => {
                let value = i128::from(*from) + i128::from(below(rng, *span));
                write_decimal(out, value, *digits)
            }
            Draws::Date { from, span } => {
                values::write_day(out, from.wrapping_add_unsigned(below(rng, *span)))
            }
            Draws::Timestamp { from, steps, step } => {
                values::write_second(out, from + below(rng, *steps) as i64 * step)
            }
            _ => Ok(()),
        };
        written.map_err(|error| error.to_string())
    }
}

/// Appends a decimal number with `digits` decimals; `value` is in units of its last digit.
fn write_decimal(out: &mut Vec<u8>, value: i128, digits: u32) -> std::io::Result<()> {
    let (scale, sign) = (10i128.pow(digits), if value < 0 { "-" } else { "" });
    let (whole, part) = (value.abs() / scale, value.abs() % scale);
    match digits as usize {
        0 => write!(out, "{sign}{whole}"),
        width => write!(out, "{sign}{whole}.{part:0width$}"),
    }
}

/// Appends this number of letters of an alphabet.
fn write_letters(rng: &mut Rng, out: &mut Vec<u8>, length: u64, alphabet: &[char]) {
    let mut letter = [0; 4];
    for _ in 0..length {
        let drawn = alphabet[rng.below(alphabet.len() as u64) as usize];
        out.extend_from_slice(drawn.encode_utf8(&mut letter).as_bytes());
    }
}

/// True if the last of these values differs from all before it.
fn is_new(drawn: &[Drawn]) -> bool {
    let Some((last, before)) = drawn.split_last() else { return true };
    before.iter().all(|other| {
        other.value != last.value || (last.value == DrawnValue::Text && other.text != last.text)
    })
}

impl Draws {
    /// The sequence whose latest values it draws.
    fn follows(&self) -> Option<usize> {
        match self {
            Draws::Latest { of, .. } => Some(*of),
            Draws::HashedKey { records: KeyDraws::Latest { inserts, .. }, .. } => Some(*inserts),
            _ => None,
        }
    }

    /// A source that draws the latest values of source `of`.
    fn latest(of: usize, other: Option<&Draws>, exponent: f64) -> Result<Draws, String> {
        let Some(Draws::Sequential { from, .. }) = other else {
            return Err("it follows no sequence".to_owned());
        };
        let before = u64::try_from(*from).unwrap_or(0).saturating_sub(1);
        match before {
            0 => Err(format!("its sequence begins at {from}, so no value is before it")),
            _ => Ok(Draws::Latest { of, before, ranks: Zipfian::new(before, exponent) }),
        }
    }

    fn of(
        source: &ValueSource,
        before: &[SharedSource],
        groups: &mut BTreeMap<String, usize>,
    ) -> Result<Draws, String> {
        let span = |from: i64, to: i64| to.wrapping_sub(from) as u64;
        Ok(match &source.values {
            SourceValues::Whole { from, to, spread } => {
                let span = span(*from, *to);
                Draws::Whole { from: *from, span, spread: Spreading::of(*spread, span) }
            }
            SourceValues::Sequential { from, to, wrap } => {
                let values = span(*from, *to).saturating_add(1);
                Draws::Sequential { from: *from, values, wrap: *wrap }
            }
            SourceValues::List { texts, weights, .. } => {
                let choices = Choices::new(texts.clone(), weights, source.is_whole())?;
                Draws::Choice { choices, sequential: false, group: None, leads: true }
            }
            SourceValues::File { path, column, weight_column, sequential, row } => {
                let (texts, weights) = values::read(path, column, weight_column.as_deref())?;
                let choices = Choices::new(texts, &weights, false)?;
                let label = row.as_ref().map(|label| format!("{label} of {}", path.display()));
                let known = groups.len();
                let leads = label.as_ref().is_none_or(|label| !groups.contains_key(label));
                let group = label.map(|label| *groups.entry(label).or_insert(known));
                Draws::Choice { choices, sequential: *sequential, group, leads }
            }
            SourceValues::Text { least, most, alphabet } => {
                Draws::Text { least: *least, most: *most, alphabet: alphabet.chars().collect() }
            }
            SourceValues::Template { text } => Draws::Template { text: text.clone() },
            SourceValues::Decimal { from, to, digits } => {
                let scale = 10f64.powi(*digits as i32);
                let (from, to) = ((from * scale).round() as i64, (to * scale).round() as i64);
                Draws::Decimal { from, span: span(from, to), digits: *digits }
            }
            SourceValues::Date { from, to } => Draws::Date { from: *from, span: span(*from, *to) },
            SourceValues::Timestamp { from, to, step } => {
                let steps = span(*from, *to) / (*step).max(1) as u64;
                Draws::Timestamp { from: *from, steps, step: *step }
            }
            SourceValues::Same { of, plus } => {
                let other = before.get(*of as usize).ok_or("it is the same as a later one")?;
                Draws::Same { slot: other.slot, plus: *plus }
            }
            SourceValues::Client => Draws::Client,
            SourceValues::Latest { of, exponent } => {
                let other = before.get(*of as usize).map(|source| &source.draws);
                Draws::latest(*of as usize, other, *exponent)?
            }
            SourceValues::Reply => Draws::Reply,
            SourceValues::HashedKey { prefix, records } => {
                let new = |number: usize| match before.get(number).map(|source| &source.draws) {
                    Some(Draws::HashedKey { records, .. }) => records.first_new(),
                    _ => None,
                };
                let records = KeyDraws::of(records, new)?;
                Draws::HashedKey { prefix: prefix.clone(), records }
            }
            SourceValues::Printable { bytes } => Draws::Printable { bytes: *bytes as usize },
        })
    }
}
