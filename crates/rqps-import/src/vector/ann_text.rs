//! Reads texts of ann-benchmarks: plot output, tables of builds, selected rows, logs of runs.

use crate::cells::{Fault, number, parse_number};
use crate::format::Result;
use crate::text::{RATES_MAX, Text};

/// A configuration as displayed: `PGVector(m=16, ef_construction=64, ef_search=20)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Configuration {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Parameters and values without surrounding blanks, in the order of the text.
    pub parameters: Vec<(String, String)>,
}

impl Configuration {
    /// A parameter by any of its names.
    fn any(&self, names: &[&str]) -> Option<&str> {
        let found = self.parameters.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.as_str())
    }

    /// Links of a node of the graph.
    pub fn m(&self) -> Option<&str> {
        self.any(&["m", "M"])
    }

    /// Width of the search while building.
    pub fn ef_construction(&self) -> Option<&str> {
        self.any(&["ef_construction", "ef_construct", "ef_cons", "efConstruction"])
    }

    /// Width of the search.
    pub fn ef_search(&self) -> Option<&str> {
        self.any(&["ef_search", "hnsw_ef", "ef"])
    }

    /// Quantization of vectors in the index.
    pub fn quantization(&self) -> Option<&str> {
        self.any(&["quantization"])
    }

    /// The key of best configurations: algorithm and quantization.
    pub fn kind(&self) -> (&str, Option<&str>) {
        (&self.algorithm, self.quantization())
    }

    /// True for equal parameters under any of their names: `ef_cons` is `ef_construction`.
    pub fn is_same(&self, other: &Configuration) -> bool {
        let known = |of: &Configuration| {
            [of.m(), of.ef_construction(), of.ef_search()].map(|value| value.map(str::to_owned))
        };
        self.algorithm == other.algorithm
            && known(self) == known(other)
            && self.others() == other.others()
    }

    /// Parameters that rqps does not have, as `name=value`.
    pub fn others(&self) -> Vec<String> {
        let known = [self.m(), self.ef_construction(), self.ef_search()];
        let known: Vec<&str> = known.into_iter().flatten().collect();
        let mut names = vec!["m", "M", "ef_construction", "ef_construct", "ef_cons"];
        names.extend(["efConstruction", "ef_search", "hnsw_ef", "ef"]);
        let other = |(name, value): &&(String, String)| {
            !names.contains(&name.as_str()) || !known.contains(&value.as_str())
        };
        let others = self.parameters.iter().filter(other);
        others.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Reads `Name(key=value, key=value)`; some names have two brackets before the first key.
    /// Blanks around values are padding.
    pub fn read(text: &str) -> Option<Configuration> {
        let (algorithm, rest) = text.trim().split_once('(')?;
        let rest = rest.trim().trim_start_matches('(');
        let rest = rest.trim_end().trim_end_matches(')');
        let algorithm = algorithm.trim();
        let parameters = rest.split(',').map(|part| {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        });
        let parameters: Option<Vec<(String, String)>> = parameters.collect();
        let named = !algorithm.is_empty() && !algorithm.contains(char::is_whitespace);
        Some(Configuration { algorithm: algorithm.to_owned(), parameters: parameters? })
            .filter(|_| named)
    }
}

/// A point of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotPoint {
    /// Line number, from 1.
    pub line: usize,
    /// The measured configuration.
    pub configuration: Configuration,
    /// Recall, with three decimals.
    pub recall: f64,
    /// Queries per second.
    pub qps: f64,
    /// The rate as printed.
    pub printed: String,
}

impl PlotPoint {
    /// True for a copy of the point: its numbers agree within the printed precision. Repetitions
    /// differ in the last digits.
    pub fn is_copy(&self, other: &PlotPoint) -> bool {
        let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let places = decimals(&self.printed).min(decimals(&other.printed));
        let half = 0.5 * 10f64.powi(-i32::try_from(places).unwrap_or(0));
        self.recall == other.recall && (self.qps - other.qps).abs() <= half * (1.0 + 1e-9)
    }
}

/// Reads `Name(…)   0.999   690.259`, also after `12:`.
fn plot_line(line: &str) -> Option<(Configuration, f64, f64, String)> {
    let line = line.trim();
    let line = match line.split_once(':') {
        Some((index, rest)) if index.trim().parse::<u64>().is_ok() => rest,
        _ => line,
    };
    let (name, numbers) = line.rsplit_once(')')?;
    let mut numbers = numbers.split_whitespace();
    let (recall, printed) = (number(numbers.next()?)?, numbers.next()?);
    let qps = number(printed)?;
    if numbers.next().is_some() {
        return None;
    }
    Some((Configuration::read(&format!("{name})"))?, recall, qps, printed.to_owned()))
}

/// True if the text is output of the plot program.
pub fn is_plot(text: &Text) -> bool {
    text.lines().take(20).any(|(_, line)| plot_line(line).is_some())
}

/// The beginnings of other lines of the plot program.
const CHATTER: [&str; 5] = ["writing output", "Computing", "computing", "Found cached", "cached"];

/// Reads output of the plot program.
///
/// # Errors
///
/// An unknown line, a recall outside 0 to 1, a negative rate, a file without points.
pub fn parse_plot(text: &Text) -> Result<Vec<PlotPoint>> {
    text.at_most(RATES_MAX)?;
    let mut points = Vec::new();
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        let said = CHATTER.iter().any(|begin| trimmed.starts_with(begin));
        if trimmed.is_empty() || said {
            continue;
        }
        let Some((configuration, recall, qps, printed)) = plot_line(row) else {
            let numbers = row.rsplit_once(')').map_or("", |(_, numbers)| numbers);
            for word in numbers.split_whitespace() {
                if let Err(fault) = parse_number(word).map_err(Fault::why) {
                    return Err(text.bad_word(line, word, format!("`{word}` {fault}")));
                }
            }
            let why = "expected `NAME(key=value, …)  recall  qps`; is the line truncated?";
            return Err(text.malformed(line, why));
        };
        if recall > 1.0 {
            return Err(text.malformed(line, format!("recall {recall} is above 1")));
        }
        points.push(PlotPoint { line, configuration, recall, qps, printed });
    }
    if points.is_empty() { Err(text.cut_short("the first point")) } else { Ok(points) }
}

/// Build time and size of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedBuild {
    /// Line number, from 1.
    pub line: usize,
    /// Name of the algorithm.
    pub algorithm: String,
    /// M, as printed.
    pub m: String,
    /// ef_construction, if there is one.
    pub ef_construction: Option<String>,
    /// Quantization of vectors, if the log tells it.
    pub quantization: Option<String>,
    /// Seconds for table, rows and index, as printed.
    pub seconds: Option<String>,
    /// Size of the index, MiB.
    pub megabytes: Option<f64>,
    /// True if the printed size is below zero, which is no size.
    pub below_zero: bool,
    /// Seconds for the rows.
    pub load_seconds: Option<f64>,
    /// Seconds for the index.
    pub index_seconds: Option<f64>,
}

/// True if the text is a table of builds.
pub fn is_builds(text: &Text) -> bool {
    text.lines().any(|(_, line)| is_build_heads(line))
}

fn is_build_heads(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first() == Some(&"M") && words.contains(&"secs")
}

/// Reads a table of builds: the algorithm on its own line, heads, rows.
///
/// # Errors
///
/// A row before an algorithm, a row without M and seconds, a table without rows.
pub fn parse_builds(text: &Text) -> Result<Vec<ListedBuild>> {
    text.at_most(RATES_MAX)?;
    let mut builds: Vec<ListedBuild> = Vec::new();
    let mut algorithms: Vec<String> = Vec::new();
    // Of tables side by side: the place of the first head of each, how many heads there are, and
    // where in the line each table begins.
    let mut places: Vec<usize> = Vec::new();
    let mut width = 0;
    let mut begins: Vec<usize> = Vec::new();
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() || trimmed.starts_with('*') || trimmed.ends_with(':') {
            continue;
        }
        if is_build_heads(row) {
            (places, width) = side_by_side(row);
            begins = row.match_indices('M').map(|(begin, _)| begin).collect();
            begins.retain(|begin| row[..*begin].ends_with(char::is_whitespace) || *begin == 0);
            if places.len() > 1 && algorithms.len() != begins.len() {
                let (tables, names) = (begins.len(), algorithms.len());
                let why = format!("{tables} tables side by side, but {names} names above them");
                return Err(text.malformed(line, why));
            }
            continue;
        }
        if trimmed.starts_with(char::is_alphabetic) {
            let names = trimmed.split('\t').flat_map(|part| part.split("  ")).map(str::trim);
            let names = names.filter(|name| !name.is_empty());
            algorithms = names.map(str::to_owned).collect();
            continue;
        }
        let cells: Vec<&str> = if row.contains('\t') {
            row.trim_end().split('\t').map(str::trim).collect()
        } else {
            row.split_whitespace().collect()
        };
        let several = places.len() > 1 && algorithms.len() > 1;
        let parts: Vec<Vec<&str>> = match several {
            true if row.contains('\t') || cells.len() == width => {
                let ends = places.iter().skip(1).copied().chain([cells.len()]);
                let of = |(begin, end): (&usize, usize)| cells.get(*begin..end.min(cells.len()));
                places.iter().zip(ends).map(|it| of(it).unwrap_or_default().to_vec()).collect()
            }
            true => beneath(row, &begins),
            false => vec![cells],
        };
        for (place, cells) in parts.iter().enumerate() {
            if several && cells.iter().all(|cell| cell.is_empty()) {
                continue;
            }
            let algorithm = algorithms.get(place).map(String::as_str).unwrap_or_default();
            builds.push(listed_build(text, (line, row), cells, algorithm, &builds)?);
        }
    }
    if builds.is_empty() { Err(text.cut_short("the first row of builds")) } else { Ok(builds) }
}

/// The words of a row for each table that begins at one of these places. A number ends beneath its
/// head or right of it, so that the rows of a short table may be missing.
fn beneath<'a>(row: &'a str, begins: &[usize]) -> Vec<Vec<&'a str>> {
    let mut parts = vec![Vec::new(); begins.len()];
    for word in row.split_whitespace() {
        let end = word.as_ptr() as usize - row.as_ptr() as usize + word.len();
        let place = begins.iter().rposition(|begin| *begin < end).unwrap_or(0);
        parts[place].push(word);
    }
    parts
}

/// The places of the first heads of tables side by side, and how many heads they have together. The
/// tables need not have the same columns.
fn side_by_side(heads: &str) -> (Vec<usize>, usize) {
    let heads: Vec<&str> = match heads.contains('\t') {
        true => heads.split('\t').map(str::trim).collect(),
        // `size (MB)` is one head.
        false => heads.split_whitespace().filter(|head| !head.starts_with('(')).collect(),
    };
    let first = |(_, head): &(usize, &&str)| **head == "M";
    (heads.iter().enumerate().filter(first).map(|(place, _)| place).collect(), heads.len())
}

fn listed_build(
    text: &Text,
    (line, row): (usize, &str),
    cells: &[&str],
    algorithm: &str,
    builds: &[ListedBuild],
) -> Result<ListedBuild> {
    let trimmed = row.trim();
    let end = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |place| place + 1);
    let cells = &cells[..end];
    let (m, cons, seconds, size) = match cells {
        [m, cons, seconds, size] => {
            (m, Some(cons).filter(|cons| !["", "-"].contains(cons)), seconds, size)
        }
        [m, seconds, size] => (m, None, seconds, size),
        _ => return Err(text.malformed(line, "expected M, cons, seconds and size")),
    };
    let numbers = m.parse::<u32>().is_ok()
        && cons.is_none_or(|cons| cons.parse::<u32>().is_ok())
        && number(seconds).is_some();
    let below_zero = parse_number(size) == Err(Fault::BelowZero);
    let megabytes = number(size);
    if !numbers || (megabytes.is_none() && !below_zero) {
        let bad = cells.iter().filter(|cell| !cell.is_empty());
        let bad = bad.filter_map(|cell| Some((*cell, parse_number(cell).err()?))).next();
        if let Some((cell, fault)) = bad {
            return Err(text.bad_word(line, cell, format!("`{cell}` {}", fault.why())));
        }
        return Err(text.malformed(line, format!("`{trimmed}` is not four numbers")));
    }
    if algorithm.is_empty() {
        return Err(text.malformed(line, "a row before the name of an algorithm"));
    }
    let same = |other: &&ListedBuild| {
        (&other.algorithm, other.m.as_str(), other.ef_construction.as_deref())
            == (&algorithm.to_owned(), *m, cons.copied())
    };
    if let Some(before) = builds.iter().find(same)
        && (before.seconds.as_deref(), before.megabytes) != (Some(*seconds), megabytes)
    {
        let why =
            format!("this row has the same index as line {}, with other numbers", before.line);
        return Err(text.malformed(line, why));
    }
    Ok(ListedBuild {
        line,
        algorithm: algorithm.to_owned(),
        m: (*m).to_owned(),
        ef_construction: cons.map(|cons| (*cons).to_owned()),
        seconds: Some((*seconds).to_owned()),
        megabytes,
        below_zero,
        ..ListedBuild::default()
    })
}

/// A row selected for publication.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// Line number, from 1.
    pub line: usize,
    /// The required recall in the heading above, if there is one.
    pub target: Option<f64>,
    /// Index among the rows of its algorithm and target, from 0.
    pub place: usize,
    /// Recall as printed.
    pub recall: String,
    /// Queries per second as printed.
    pub qps: String,
    /// Seconds of the build as printed, if there are any.
    pub seconds: Option<String>,
    /// The selected configuration.
    pub configuration: Configuration,
}

/// Reads `0.990 2337.0     PGVector(…)`, also with seconds between.
fn selected_line(line: &str) -> Option<(Vec<String>, Configuration)> {
    let place = line.find(|c: char| c.is_alphabetic())?;
    let numbers: Vec<String> = line[..place].split_whitespace().map(str::to_owned).collect();
    let whole = (2..=3).contains(&numbers.len()) && numbers.iter().all(|n| number(n).is_some());
    Some((numbers, Configuration::read(&line[place..])?)).filter(|_| whole)
}

/// True if the text has selected rows, also below a legend.
pub fn is_selected(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line.trim()).filter(|line| !line.is_empty());
    let first = lines.find(|line| !is_legend(line));
    first.is_some_and(|line| line.starts_with("Best QPS") || selected_line(line).is_some())
}

/// True for `Legend`, `* recall & QPS - results from the benchmark`, `recall TAB QPS TAB isecs …`.
fn is_legend(line: &str) -> bool {
    let words: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let heads = words.first().is_some_and(|word| word == "recall")
        && words.get(1).is_some_and(|word| word == "qps");
    line.trim_end_matches(':') == "Legend" || line.starts_with('*') || heads
}

/// Reads selected rows, below `Best QPS with recall >= X` or as a plain list.
///
/// # Errors
///
/// An unknown line, a file without rows.
pub fn parse_selected(text: &Text) -> Result<Vec<Selected>> {
    text.at_most(RATES_MAX)?;
    let mut rows: Vec<Selected> = Vec::new();
    let mut target = None;
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() || is_legend(trimmed) {
            continue;
        }
        if let Some(rest) = trimmed.strip_prefix("Best QPS with recall >=") {
            let recall = number(rest.trim());
            target = Some(recall.ok_or_else(|| text.malformed(line, "no recall after `>=`"))?);
            continue;
        }
        let Some((numbers, configuration)) = selected_line(trimmed) else {
            return Err(text.malformed(line, "expected `recall qps NAME(key=value, …)`"));
        };
        let same = |other: &&Selected| {
            other.target == target && other.configuration.kind() == configuration.kind()
        };
        let place = rows.iter().filter(same).count();
        let mut numbers = numbers.into_iter();
        rows.push(Selected {
            line,
            target,
            place,
            recall: numbers.next().unwrap_or_default(),
            qps: numbers.next().unwrap_or_default(),
            seconds: numbers.next(),
            configuration,
        });
    }
    if rows.is_empty() { Err(text.cut_short("the first selected row")) } else { Ok(rows) }
}

/// True if the text is the log of a run.
pub fn is_log(text: &Text) -> bool {
    text.lines().any(|(_, line)| line.starts_with("Trying to instantiate"))
}

/// Reads the builds in the log of a run. `Trying to instantiate` names one; the next `Built index
/// in` has its time with table and rows; a `DDL:` line has both parts.
///
/// # Errors
///
/// Invalid seconds or sizes, a log without builds.
pub fn parse_log(text: &Text) -> Result<Vec<ListedBuild>> {
    let mut builds: Vec<ListedBuild> = Vec::new();
    let mut current: Option<ListedBuild> = None;
    for (line, row) in text.lines() {
        let bad = |what: &str| text.malformed(line, format!("`{what}` is not a number"));
        let value = |text: &str| {
            let word = text.split_whitespace().next().unwrap_or("");
            number(word).ok_or_else(|| bad(word)).map(|value| (value, word.to_owned()))
        };
        if row.starts_with("Trying to instantiate") {
            builds.extend(current.take().filter(|build| build.seconds.is_some()));
            current = Some(instantiated(line, row));
        }
        let Some(build) = &mut current else { continue };
        name_build(row, build);
        if let Some(rest) = row.strip_prefix("Built index in") {
            build.seconds = Some(value(rest)?.1);
            build.line = line;
        } else if let Some(rest) = row.strip_prefix("Index size:") {
            build.below_zero = parse_number(rest) == Err(Fault::BelowZero);
            if !build.below_zero {
                build.megabytes = Some(value(rest)?.0 / 1024.0);
            }
        } else if let Some(rest) = row.strip_prefix("Insert time for") {
            let seconds = rest.rsplit_once(':').map(|(_, seconds)| seconds).unwrap_or("");
            build.load_seconds = Some(value(seconds)?.0);
        } else if let Some(rest) = row.strip_prefix("DDL:") {
            (build.load_seconds, build.index_seconds) = ddl_seconds(rest);
        }
    }
    builds.extend(current.filter(|build| build.seconds.is_some()));
    if builds.is_empty() {
        Err(text.cut_short("a built index (`Built index in …`)"))
    } else {
        Ok(builds)
    }
}

/// Reads `…algorithms.pgvector.PGVector(['euclidean', {'M': 16, 'efConstruction': 64}])`.
fn instantiated(line: usize, row: &str) -> ListedBuild {
    let (path, arguments) = row.split_once('(').unwrap_or((row, ""));
    let algorithm = path.rsplit(['.', ' ']).next().unwrap_or("").to_owned();
    let value = |names: &[&str]| {
        names.iter().find_map(|name| {
            let (_, rest) = arguments.split_once(&format!("'{name}':"))?;
            let digits: String =
                rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            (!digits.is_empty()).then_some(digits)
        })
    };
    ListedBuild {
        line,
        algorithm,
        m: value(&["M", "m"]).unwrap_or_default(),
        ef_construction: value(&["efConstruction", "ef_construction", "ef_construct"]),
        ..ListedBuild::default()
    }
}

/// Reads `12 M, euclidean metric`, `Qdrant: 32 ef_cons, 8 M, angular metric, none quantization`:
/// the description by a module whose arguments have no names.
fn name_build(row: &str, build: &mut ListedBuild) {
    if !row.contains(" metric") || !row.contains(" M,") {
        return;
    }
    let said = row.split_once(": ").map_or(row, |(_, said)| said);
    for part in said.split(',') {
        let mut words = part.split_whitespace();
        let (Some(value), Some(name), None) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let value = value.to_owned();
        match name {
            "M" if build.m.is_empty() => build.m = value,
            "ef_cons" => build.ef_construction = build.ef_construction.take().or(Some(value)),
            "quantization" => build.quantization = Some(value),
            _ => {}
        }
    }
}

/// Reads `table 234 MB in 10.7 seconds, index 234 MB in 17.5 seconds`.
fn ddl_seconds(rest: &str) -> (Option<f64>, Option<f64>) {
    let part = |name: &str| {
        let part = rest.split(',').find(|part| part.trim_start().starts_with(name))?;
        let (_, seconds) = part.rsplit_once(" in ")?;
        number(seconds.split_whitespace().next()?)
    };
    (part("table"), part("index"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::format::ImportError;

    fn text(content: &str) -> Text {
        Text::of(Path::new("o.plot"), content)
    }

    #[test]
    fn points_are_read_whatever_the_padding() {
        let plot = "writing output to x.png\nComputing knn metrics\n \
            MariaDB(m= 4, ef_search=10)        0.951     6079.1\n\
            12: Qdrant((quantization=none, m=8, ef_construct=16, hnsw_ef=64)  1.000  9.5\n";
        let points = parse_plot(&text(plot)).unwrap();
        assert_eq!((points[0].line, points[0].configuration.m()), (3, Some("4")));
        assert_eq!((points[0].recall, points[0].qps), (0.951, 6079.1));
        let qdrant = &points[1].configuration;
        assert_eq!((qdrant.algorithm.as_str(), qdrant.ef_search()), ("Qdrant", Some("64")));
        assert_eq!(qdrant.ef_construction(), Some("16"));
        assert_eq!(qdrant.others(), ["quantization=none"]);
    }

    #[test]
    fn builds_and_selections_are_read() {
        let table = "Legend:\n* M - value\n\npgvector\nM\tcons\tsecs\tsize\n 8\t 32\t 27.0\t234\n\
            \nMariaDB\nM\tNA\tsecs\tsize (MB)\n 4\t\t 11.9\t120\n";
        let builds = parse_builds(&text(table)).unwrap();
        assert_eq!((builds[0].m.as_str(), builds[0].ef_construction.as_deref()), ("8", Some("32")));
        assert_eq!(
            (builds[1].algorithm.as_str(), builds[1].ef_construction.as_deref()),
            ("MariaDB", None)
        );
        assert_eq!(
            (builds[1].seconds.as_deref(), builds[1].megabytes),
            (Some("11.9"), Some(120.0))
        );
        // A size that is none loses its cell, not the table.
        let builds = parse_builds(&text(&table.replace("234", "-1"))).unwrap();
        assert_eq!((builds[0].megabytes, builds[0].below_zero), (None, true));
        assert_eq!(builds[1].megabytes, Some(120.0));
        let rows = "Best QPS with recall >= 0.99\n0.990 2337.0     A(m=16, ef_search=20)\n\
            0.991 2323.6 70.7 A(m=8, ef_search=20)\n0.995 4745.0 B(m=12, ef_search=10)\n";
        let rows = parse_selected(&text(rows)).unwrap();
        assert_eq!((rows[1].target, rows[1].place), (Some(0.99), 1));
        assert_eq!(rows[1].seconds.as_deref(), Some("70.7"));
        assert_eq!((rows[2].place, rows[2].qps.as_str()), (0, "4745.0"));
    }

    #[test]
    fn tables_of_builds_may_stand_side_by_side() {
        let check = |content: &str| {
            let builds = parse_builds(&text(content)).unwrap();
            let of = |build: &ListedBuild| {
                let seconds = build.seconds.clone().unwrap_or_default();
                (build.algorithm.clone(), build.m.clone(), seconds, build.line)
            };
            let found: Vec<(String, String, String, usize)> = builds.iter().map(of).collect();
            let expected = [("a", "8", "27.0", 3), ("b", "8", "23.1", 3), ("a", "16", "50.4", 4)];
            let expected = expected.map(|(name, m, seconds, line)| {
                (name.to_owned(), m.to_owned(), seconds.to_owned(), line)
            });
            assert_eq!(found, expected, "{content}");
        };
        check(
            "a\t\t\t\t\tb\nM\tcons\tsecs\tsize (MB)\t\tM\tcons\tsecs\tsize (MB)\n\
             8\t32\t27.0\t234\t\t8\t32\t23.1\t117\n16\t32\t50.4\t234\n",
        );
        check(
            "a                  b\nM cons secs size (MB)  M cons secs size (MB)\n\
             8  32  27.0  234   8  32  23.1  117\n16 32  50.4  234\n",
        );
        // Only one of them has a column `cons`, or values in it.
        for uneven in [
            "a                b\nM  secs size (MB) M  cons secs size (MB)\n\
             8  27.0  234      8  32   23.1  117\n16 50.4  234\n",
            "a\t\t\t\tb\nM\tsecs\tsize\t\tM\tcons\tsecs\tsize\n\
             8\t27.0\t234\t\t8\t32\t23.1\t117\n16\t50.4\t234\n",
            "a                b\nM cons secs size M cons secs size\n\
             8 -    27.0  234 8 32   23.1  117\n16 -  50.4  234\n",
        ] {
            check(uneven);
        }
        let short = "a                  b\nM cons secs size (MB)  M cons secs size (MB)\n";
        let builds = parse_builds(&text(&format!("{short}                       8  32 1.5  1\n")));
        assert_eq!(builds.unwrap()[0].algorithm, "b");
        let fault = parse_builds(&text(&short.replacen("                  ", " ", 1))).unwrap_err();
        assert!(fault.to_string().contains("2 tables side by side, but 1 name"), "{fault}");
    }

    #[test]
    fn selections_have_legends_and_kinds() {
        let rows = "Legend\n* recall & QPS - results\n* isecs - seconds\n\n\
            Best QPS with recall >= 0.99\nrecall\tQPS\tisecs\talgorithm\n\
            0.990   10704\t 71.2\tPGVector(m=16, ef_cons=96, ef_search=20)\n\
            0.990 571.8     Qdrant((m=32, ef_construct=256, quantization=none, hnsw_ef=40)\n\
            0.990 763.6     Qdrant((m=48, ef_construct=192, quantization=scalar, hnsw_ef=40)\n";
        assert!(is_selected(&text(rows)) && !is_plot(&text(rows)));
        let rows = parse_selected(&text(rows)).unwrap();
        assert_eq!((rows[0].seconds.as_deref(), rows[0].line), (Some("71.2"), 7));
        assert_eq!((rows[1].place, rows[2].place), (0, 0));
        let of = |text: &str| Configuration::read(text).unwrap();
        let plotted = of("PGVector(m=16, ef_construction=96, ef_search=20)");
        assert!(rows[0].configuration.is_same(&plotted));
        assert!(!rows[1].configuration.is_same(&rows[2].configuration));
        assert!(!plotted.is_same(&of("PGVector(m=16, ef_construction=96, ef_search=40)")));
        assert!(!plotted.is_same(&of("PGVector(m=16, ef_construction=96, ef_search=20, x=1)")));
    }

    #[test]
    fn modules_name_what_their_arguments_do_not() {
        let log = "Trying to instantiate a.qdrant.Qdrant(['angular', 'none', 8, 32])\n\
            Qdrant: 32 ef_cons, 8 M, angular metric, none quantization\nBuilt index in 189.3\n\
            Trying to instantiate a.mariadb.MariaDB(['euclidean', {'M': 12}])\n\
            12 M, euclidean metric\nBuilt index in 27.4387\n";
        let builds = parse_log(&text(log)).unwrap();
        let (m, cons) = (builds[0].m.as_str(), builds[0].ef_construction.as_deref());
        assert_eq!((m, cons, builds[0].quantization.as_deref()), ("8", Some("32"), Some("none")));
        assert_eq!((builds[1].m.as_str(), builds[1].ef_construction.as_deref()), ("12", None));
    }

    #[test]
    fn logs_tell_each_build() {
        let log = "Trying to instantiate a.b.pgvector.PGVector(['euclidean', {'M': 16, \
            'efConstruction': 64}])\nDDL: table 2 MB in 10.7 seconds, index 9 MB in 17.5 seconds\n\
            Built index in 28.5\nIndex size:  239616.0\n\
            Trying to instantiate a.b.mariadb.MariaDB(['euclidean', {'M': 12}])\n\
            Insert time for 47_040_000 records:    5.41\nBuilt index in 27.4387\n\
            Trying to instantiate a.b.mariadb.MariaDB(['euclidean', {'M': 13}])\n";
        let builds = parse_log(&text(log)).unwrap();
        assert_eq!(builds.len(), 2);
        assert_eq!((builds[0].load_seconds, builds[0].index_seconds), (Some(10.7), Some(17.5)));
        assert_eq!((builds[0].megabytes, builds[0].m.as_str()), (Some(234.0), "16"));
        assert_eq!(
            (builds[1].seconds.as_deref(), builds[1].load_seconds),
            (Some("27.4387"), Some(5.41))
        );
    }

    #[test]
    fn faults_name_the_line() {
        let check = |fault: ImportError, expected: &str| {
            let fault = fault.to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check(parse_plot(&text("A(m=1)  0.9  5\nA(m=1)  0.9\n")).unwrap_err(), "line 2: expected");
        check(parse_plot(&text("A(m=1)  1.9  5\n")).unwrap_err(), "line 1: recall 1.9");
        check(
            parse_plot(&text("A(m=1)  0.9  inf\n")).unwrap_err(),
            "line 1, column 14: `inf` is inf",
        );
        let twice = "a\n8\t32\t27.0\t234\n8\t32\t28.0\t234\n";
        check(
            parse_builds(&text(twice)).unwrap_err(),
            "line 3: this row has the same index as line 2",
        );
        check(parse_plot(&text("")).unwrap_err(), "line 1: the file ends here");
        check(parse_builds(&text("8\t32\t1\t2\n")).unwrap_err(), "line 1: a row before the name");
        check(parse_builds(&text("a\n8\tx\t1\t2\n")).unwrap_err(), "line 2, column 3: `x`");
        check(
            parse_selected(&text("Best QPS with recall >= x\n")).unwrap_err(),
            "line 1: no recall",
        );
        check(parse_selected(&text("0.9 A(m=1)\n")).unwrap_err(), "line 1: expected");
        check(parse_log(&text("Trying to instantiate X(\n")).unwrap_err(), "a built index");
        let log = "Trying to instantiate X(\nBuilt index in soon\n";
        check(parse_log(&text(log)).unwrap_err(), "line 2: `soon` is not a number");
    }
}
