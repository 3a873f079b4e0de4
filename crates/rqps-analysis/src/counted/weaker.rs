//! Functions that two builds have under names that differ in form: a release changes the arguments
//! of a C++ function, or its compiler makes a specialised copy. They are matched by a weaker key,
//! the qualified name alone, where that is unambiguous in both builds.
//!
//! The last component of the name alone would match little more, and wrongly: of MySQL 5.6 and 8.0
//! 1.2 % of the instructions, among them `MDL_map::remove` with `MDL_ticket_store::remove`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::nameless::{file_of, is_all_of};
use super::work::{Callers, ThreadWork};

/// Name in the target → name in the baseline, of functions matched by the weaker key.
pub(super) type WeakMatches = BTreeMap<Arc<str>, Arc<str>>;

/// Gives functions of the baseline the name that they have in the target, where only the weaker key
/// says that they are the same.
pub(super) fn rename(mut baseline: Vec<&mut ThreadWork>, target: &[&ThreadWork]) -> WeakMatches {
    let matches = {
        let before: Vec<&ThreadWork> = baseline.iter().map(|work| &**work).collect();
        matches(&before, target)
    };
    let back: BTreeMap<&Arc<str>, &Arc<str>> =
        matches.iter().map(|(target, baseline)| (baseline, target)).collect();
    let new_name = |name: Arc<str>| match back.get(&name) {
        Some(other) => Arc::clone(other),
        None => name,
    };
    for work in baseline.iter_mut().filter(|_| !back.is_empty()) {
        // Each name stands for one key, so no two functions become one.
        let functions = std::mem::take(&mut work.functions).into_iter();
        work.functions = functions.map(|(name, cost)| (new_name(name), cost)).collect();
        let callers = std::mem::take(&mut work.callers).into_iter();
        let renamed = |by: BTreeSet<Arc<str>>| by.into_iter().map(&new_name).collect();
        work.callers = callers.map(|(name, by)| (new_name(name), renamed(by))).collect::<Callers>();
    }
    matches
}

/// The functions whose key stands for one name in the baseline and for another one in the target.
fn matches(baseline: &[&ThreadWork], target: &[&ThreadWork]) -> WeakMatches {
    let (before, after) = (by_key(baseline), by_key(target));
    let mut found = WeakMatches::new();
    for (key, names) in before {
        let others = after.get(&key);
        if let ([name], Some([other])) = (&*names, others.map(Vec::as_slice))
            && name != other
        {
            found.insert(Arc::clone(other), Arc::clone(name));
        }
    }
    found
}

fn by_key(works: &[&ThreadWork]) -> BTreeMap<String, Vec<Arc<str>>> {
    let names: BTreeSet<&Arc<str>> = works.iter().flat_map(|work| work.functions.keys()).collect();
    let mut all: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
    for name in names.into_iter().filter(|name| file_of(name).is_none() && !is_all_of(name)) {
        all.entry(plain_name(name)).or_default().push(Arc::clone(name));
    }
    all
}

/// Copies of a function that compilers make end with these words and numbers.
const COPIES: [&str; 6] = ["constprop", "isra", "part", "cold", "lto_priv", "llvm"];

/// A name with its namespaces and classes, without return type, arguments, arguments of templates,
/// version of the symbol and the marks of copies: `void ns::sort<int>(int*) [clone .part.0]` is
/// `ns::sort`.
///
/// The row of all nameless functions of a file keeps its name: its parentheses hold no arguments.
pub fn plain_name(name: &str) -> String {
    if is_all_of(name) {
        return name.to_owned();
    }
    let name = without_marks(name);
    let mut rest = name;
    let mut plain = String::with_capacity(name.len());
    while let Some(first) = rest.chars().next() {
        let begins_word = !plain.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let taken = match first {
            '(' if rest.starts_with(ANONYMOUS) => copied(&mut plain, ANONYMOUS),
            'o' if begins_word && rest.starts_with(OPERATOR) => {
                copied(&mut plain, &rest[..operator_end(rest)])
            }
            '(' | '<' => bracket_end(rest),
            // `operator< <int>`
            ' ' if rest.starts_with(" <") => 1,
            ' ' => match QUALIFIERS.iter().find(|word| rest.starts_with(**word)) {
                Some(word) => word.len(),
                None => {
                    // The text before was the return type.
                    plain.clear();
                    1
                }
            },
            other => {
                plain.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    if plain.is_empty() { name.to_owned() } else { plain }
}

const ANONYMOUS: &str = "(anonymous namespace)";
const OPERATOR: &str = "operator";
/// Qualifiers that may follow arguments.
const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];

fn copied(plain: &mut String, text: &str) -> usize {
    plain.push_str(text);
    text.len()
}

/// Without `[clone .isra.0]`, `.constprop.1`, `@@GLIBC_2.34`.
fn without_marks(name: &str) -> &str {
    let name = name.split(" [clone ").next().unwrap_or(name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let mut short = name;
    while let Some((before, last)) = short.rsplit_once('.') {
        if COPIES.contains(&last) {
            return without_marks(before);
        }
        if last.is_empty() || !last.chars().all(|c| c.is_ascii_digit()) {
            break;
        }
        short = before;
    }
    name
}

/// The end of an operator's name: `operator()`, `operator<<`, `operator new`, `operator bool`.
fn operator_end(text: &str) -> usize {
    let after = &text[OPERATOR.len()..];
    let symbols = match after {
        call if call.starts_with("()") => 2,
        _ => after.find(|c: char| !"<>=!+-*/%^&|~,[]".contains(c)).unwrap_or(after.len()),
    };
    let length = match symbols {
        // A word: the name of a type, `new` or `delete`; or a function whose name begins like this.
        0 if after.starts_with(' ') => after.find('(').unwrap_or(after.len()),
        symbols => symbols,
    };
    OPERATOR.len() + length
}

/// The length of what the brackets at the beginning enclose, with them.
fn bracket_end(text: &str) -> usize {
    let (mut depth, mut last) = (0_usize, ' ');
    for (place, c) in text.char_indices() {
        match c {
            '(' | '<' => depth += 1,
            '>' if last == '-' => {}
            ')' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return place + c.len_utf8();
        }
        last = c;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::FunctionCost;

    #[test]
    fn names_without_what_a_release_changes() {
        for (name, plain) in [
            ("alloc_root", "alloc_root"),
            ("JOIN::optimize(bool)", "JOIN::optimize"),
            ("Item::save(Field*, bool) const", "Item::save"),
            ("void enter<Policy<Mutex<int> > >(Policy<Mutex<int> >*, ut::Location)", "enter"),
            ("Buf_fetch<Buf_fetch_normal>::lookup()", "Buf_fetch::lookup"),
            ("cache_constant(THD*, Item**) [clone .isra.0]", "cache_constant"),
            (
                "TrxInInnoDB::enter(trx_t*, bool) [clone .part.0] [clone .cold]",
                "TrxInInnoDB::enter",
            ),
            ("balance.constprop.0.isra.1", "balance"),
            ("version.12", "version.12"),
            ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
            ("(anonymous namespace)::read(int)", "(anonymous namespace)::read"),
            ("bool operator< <int>(List<int> const&)", "operator<"),
            ("A::operator()(int) const", "A::operator()"),
            ("A::operator->() const", "A::operator->"),
            ("operator new(unsigned long)", "operator new"),
            (
                "run(int)::{lambda(int, A<b>)#2}::operator()(int) const",
                "run::{lambda#2}::operator()",
            ),
            ("std::enable_if<(1 > 0), int>::type f<int>(int)", "f"),
            ("my_operator(int)", "my_operator"),
            ("?", "?"),
            ("(below main)", "(below main)"),
            ("(no symbol) postgres.elf", "(no symbol) postgres.elf"),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
    }

    fn work(names: &[&str]) -> ThreadWork {
        let cost = FunctionCost { own: 10.0, inclusive: 10.0, calls: 1.0 };
        let callers =
            names.iter().map(|name| (Arc::from(*name), BTreeSet::from([names[0].into()])));
        ThreadWork {
            total: 10.0 * names.len() as f64,
            functions: names.iter().map(|name| (Arc::from(*name), cost.clone())).collect(),
            callers: callers.collect(),
            simulated: None,
        }
    }

    #[test]
    fn only_what_is_unambiguous_is_matched() {
        let mut before = work(&["run(int)", "add(int)", "sort(A*)", "sort(B*)", "f", "db+0x10"]);
        let after = work(&["run(long)", "add(int)", "sort(C*)", "f", "f.part.0", "db+0x20"]);
        let found = rename(vec![&mut before], &[&after]);
        let pairs: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(pairs, [("run(long)", "run(int)")]);
        let names: Vec<&str> = before.functions.keys().map(|name| &**name).collect();
        assert_eq!(names, ["add(int)", "db+0x10", "f", "run(long)", "sort(A*)", "sort(B*)"]);
        assert_eq!(before.callers["f"], BTreeSet::from([Arc::from("run(long)")]));
        assert_eq!(before.functions["run(long)"].own, 10.0);
    }
}
