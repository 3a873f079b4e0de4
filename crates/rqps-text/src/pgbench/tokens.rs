//! The words of an expression.

use std::collections::HashMap;
use std::fmt;

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Integer(i64),
    /// 2⁶³, which only a minus makes a whole number.
    MinusLeast,
    Double(f64),
    /// `:name`.
    Variable(String),
    /// A function or a word such as `case`, in lower case.
    Word(String),
    /// An operator, a parenthesis or a comma.
    Sign(&'static str),
    End,
}

/// Signs, the longer ones first.
const SIGNS: [&str; 21] = [
    "<<", ">>", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "(", ")", ",", "<", ">", "=", "|",
    "&", "#", "~",
];

/// Reads the words of an expression up to the end of its line.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// The next word, and where it begins.
    next: Token,
    begin: usize,
}

impl<'a> Tokens<'a> {
    /// From byte `at` of `text`.
    pub(super) fn new(text: &'a str, at: usize) -> Result<Tokens<'a>, ScriptFault> {
        let mut tokens = Tokens { text, at, next: Token::End, begin: at };
        tokens.advance()?;
        Ok(tokens)
    }

    /// The next word.
    pub(super) fn peek(&self) -> &Token {
        &self.next
    }

    /// Takes the next word.
    pub(super) fn take(&mut self) -> Result<Token, ScriptFault> {
        let taken = std::mem::replace(&mut self.next, Token::End);
        self.advance()?;
        Ok(taken)
    }

    /// Takes the next word if it is this sign.
    pub(super) fn take_sign(&mut self, sign: &str) -> Result<bool, ScriptFault> {
        let is_it = matches!(&self.next, Token::Sign(next) if *next == sign);
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    /// Takes the next word if it is this one.
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, ScriptFault> {
        let is_it = matches!(&self.next, Token::Word(next) if next == word);
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    /// A fault at the next word.
    pub(super) fn fault(&self, what: impl Into<String>) -> ScriptFault {
        self.fault_at(self.begin, what)
    }

    /// The place of the next word.
    pub(super) fn place(&self) -> usize {
        self.begin
    }

    /// A fault at a place of an earlier word.
    pub(super) fn fault_at(&self, place: usize, what: impl Into<String>) -> ScriptFault {
        ScriptFault::at(self.text, place, what)
    }

    /// Says what the next word is.
    pub(super) fn found(&self) -> String {
        match &self.next {
            Token::End => "the end of the line".to_owned(),
            _ => format!("`{}`", &self.text[self.begin..self.at]),
        }
    }

    fn advance(&mut self) -> Result<(), ScriptFault> {
        self.at = skip_blanks(self.text, self.at);
        self.begin = self.at;
        let rest = &self.text.as_bytes()[self.at..];
        self.next = match rest.first() {
            None | Some(b'\n') => Token::End,
            Some(digit) if digit.is_ascii_digit() => self.number()?,
            Some(b'.') if rest.get(1).is_some_and(u8::is_ascii_digit) => self.number()?,
            Some(b':') => {
                let length = rest[1..].iter().take_while(|byte| is_of_word(**byte)).count();
                if length == 0 {
                    return Err(self.fault("the name of a variable must follow `:`"));
                }
                self.at += 1 + length;
                Token::Variable(self.text[self.begin + 1..self.at].to_owned())
            }
            Some(byte) if is_of_word(*byte) => {
                self.at += rest.iter().take_while(|byte| is_of_word(**byte)).count();
                Token::Word(self.text[self.begin..self.at].to_ascii_lowercase())
            }
            Some(_) => match SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
                Some(sign) => {
                    self.at += sign.len();
                    Token::Sign(if *sign == "!=" { "<>" } else { sign })
                }
                None => {
                    let letter = self.text[self.at..].chars().next().unwrap_or(' ');
                    return Err(self.fault(format!("`{letter}` means nothing in an expression")));
                }
            },
        };
        Ok(())
    }

    fn number(&mut self) -> Result<Token, ScriptFault> {
        let bytes = self.text.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = self.at + digits(self.at);
        let mut is_whole = true;
        if bytes.get(end) == Some(&b'.') {
            is_whole = false;
            end += 1 + digits(end + 1);
        }
        if let Some(b'e' | b'E') = bytes.get(end) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let length = digits(end + 1 + sign);
            if length > 0 {
                is_whole = false;
                end += 1 + sign + length;
            }
        }
        self.at = end;
        let digits = &self.text[self.begin..end];
        if is_whole {
            return match digits.parse::<u64>() {
                Ok(number) if number == 1 << 63 => Ok(Token::MinusLeast),
                Ok(number) if number < 1 << 63 => Ok(Token::Integer(number as i64)),
                _ => Err(self.fault(format!("`{digits}` is no whole number of 64 bits"))),
            };
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Double(number)),
            _ => Err(self.fault(format!("`{digits}` is too large for a double"))),
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The first place at `at` or later that is no blank and no continued end of a line.
pub(super) fn skip_blanks(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        match &bytes[at..] {
            [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..] => at += 1,
            [b'\\', rest @ ..] => {
                let returns = rest.iter().take_while(|byte| **byte == b'\r').count();
                if rest.get(returns) != Some(&b'\n') {
                    return at;
                }
                at += 2 + returns;
            }
            _ => return at,
        }
    }
}

/// A fault in a script, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The problem, and a way out.
    pub what: String,
}

impl ScriptFault {
    /// A fault at a byte of the text.
    pub(super) fn at(text: &str, place: usize, what: impl Into<String>) -> ScriptFault {
        let before = &text.as_bytes()[..place.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        // A character begins with a byte that continues none.
        let letters = before[begin..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32;
        ScriptFault { line, column: letters + 1, what: what.into() }
    }
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

// Names of variables, numbered, and references to them in SQL.

/// The variables that the scripts of a step name, each by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableNames {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl VariableNames {
    /// The number of a variable, which is new if nobody named it before.
    pub fn number(&mut self, name: &str) -> u32 {
        let known = self.find(name);
        known.unwrap_or_else(|| {
            let number = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
            number
        })
    }

    /// The number of a variable, if somebody named it.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// All names in the order of their numbers.
    pub fn all(&self) -> &[String] {
        &self.names
    }
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// True if a variable may have the name.
pub fn is_variable_name(name: &str) -> bool {
    reference(name.as_bytes()) == Some(name.len())
}

/// Length of the name that a text begins with.
fn reference(text: &[u8]) -> Option<usize> {
    begins_name(*text.first()?).then(|| {
        text.iter().take_while(|byte| begins_name(**byte) || byte.is_ascii_digit()).count()
    })
}

/// The first reference `:name` at `from` or later: where its colon is, and where its name ends.
/// Quotes and comments count for nothing, as in pgbench, and `::` is no reference.
pub(super) fn next_reference(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b':')?;
        if let Some(length) = reference(&bytes[at + 1..]) {
            return Some((at, at + 1 + length));
        }
        at += bytes[at..].iter().take_while(|byte| **byte == b':').count();
    }
}

// The command `\setrandom`, which pgbench had up to version 9.6.

/// The way out for `\setrandom name from to`, which pgbench has no more.
pub(super) fn instead_of_setrandom(words: &[(usize, String)]) -> String {
    let given =
        |at: usize, other: &'static str| words.get(at).map_or(other, |(_, word)| word.as_str());
    let (name, from, to) = (given(0, "name"), given(1, "1"), given(2, "10"));
    let random = match given(3, "uniform") {
        kind @ ("gaussian" | "exponential") => {
            format!("random_{kind}({from}, {to}, {})", given(4, "2.5"))
        }
        _ => format!("random({from}, {to})"),
    };
    format!("pgbench 9.6 was the last with `\\setrandom`: write `\\set {name} {random}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_quotes_too_but_not_after_a_second_colon() {
        let names = |text: &str| {
            let (mut found, mut from) = (Vec::new(), 0);
            while let Some((at, end)) = next_reference(text, from) {
                found.push(text[at + 1..end].to_owned());
                from = end;
            }
            found
        };
        assert_eq!(names("a = :x AND ':y' || :z1::text /* :w */"), ["x", "y", "z1", "w"]);
        assert_eq!(names(":1 : a ::b :::c"), [""; 0]);
        assert_eq!(names(":a:b"), ["a", "b"]);
    }

    #[test]
    fn names_are_letters_and_digits_but_not_first() {
        assert!(is_variable_name("a_1") && is_variable_name("_") && is_variable_name("ä"));
        assert!(!is_variable_name("1a") && !is_variable_name("") && !is_variable_name("a-b"));
    }
}
