//! The words of an expression.

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
