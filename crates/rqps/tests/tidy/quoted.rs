//! Finds texts for people in sources: literals and comments.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};

use crate::sources::{is_test_line, test_lines, tokens};

/// Texts of the string literals of a source without its tests, and with `docs` of its
/// documentation, each on one line.
pub(crate) fn literals(path: &str, text: &str, docs: bool) -> Vec<String> {
    let mut found = Vec::new();
    collect(tokens(path, text), &test_lines(path, text), docs, &mut found);
    found
}

fn collect(
    stream: TokenStream,
    tests: &[RangeInclusive<usize>],
    docs: bool,
    found: &mut Vec<String>,
) {
    // Lines of documentation that follow each other are one text.
    let mut doc: Option<String> = None;
    let mut before = String::new();
    for token in stream {
        if is_test_line(tests, token.span().start().line) {
            continue;
        }
        let word = token.to_string();
        match token {
            TokenTree::Group(group) => {
                let mut words = group.stream().into_iter();
                let is_doc = before == "#" || before == "!";
                match words.next() {
                    Some(TokenTree::Ident(ident)) if is_doc && ident == "doc" => {
                        let text = words.last().and_then(|literal| string(&literal.to_string()));
                        let text = text.filter(|_| docs).unwrap_or_default();
                        doc = Some(format!("{} {}", doc.unwrap_or_default(), one_line(&text)));
                    }
                    _ => {
                        found.extend(doc.take());
                        collect(group.stream(), tests, docs, found);
                    }
                }
            }
            TokenTree::Literal(_) => found.extend(string(&word).map(|text| one_line(&text))),
            TokenTree::Punct(_) => {}
            TokenTree::Ident(_) => found.extend(doc.take()),
        }
        before = word;
    }
    found.extend(doc);
}

/// The text of a string literal.
fn string(literal: &str) -> Option<String> {
    match syn::parse_str::<syn::Lit>(literal) {
        Ok(syn::Lit::Str(text)) => Some(text.value()),
        _ => None,
    }
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `text` holds `phrase` as whole words, whatever the case.
pub(crate) fn holds(text: &str, phrase: &str) -> bool {
    let (text, phrase) = (text.to_lowercase(), phrase.to_lowercase());
    let is_edge = |letter: Option<char>| letter.is_none_or(|it| !it.is_alphanumeric());
    text.match_indices(&phrase).any(|(at, _)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + phrase.len()..].chars().next())
    })
}

/// Texts of comments: lines of `//` that follow each other are one text.
pub(crate) fn comments(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let whole = line.trim_start().strip_prefix("//");
        let end = || line.split_once(" // ").map(|(_, end)| end);
        goes_on &= whole.is_some();
        let Some(comment) = whole.or_else(end) else { continue };
        let comment = one_line(comment.trim_start_matches(['/', '!']));
        match found.last_mut().filter(|_| goes_on) {
            Some(last) => *last = format!("{last} {comment}"),
            None => found.push(comment),
        }
        goes_on = whole.is_some();
    }
    found
}

#[test]
fn texts_for_people_are_found() {
    let source = "/// One\n/// two.\nfn f() { g!(\"a \\\n b\", r\"c\", 'd', 1) }\n\
                  #[cfg(test)] mod t { fn f() { \"e\"; } }";
    assert_eq!(
        literals("x", source, true),
        ["One two.", "a b", "c"].map(|it| {
            if it == "One two." { format!(" {it}").replace("  ", " ") } else { it.to_string() }
        })
    );
    assert_eq!(literals("x", source, false).concat().trim(), "a bc");
    assert_eq!(comments("//! a\n//! b\nx(); // c\n\n// d\n"), ["a b", "c", "d"]);
    assert!(holds("It was Thrown away.", "thrown away"));
    assert!(!holds("overthrown away", "thrown away"));
}
