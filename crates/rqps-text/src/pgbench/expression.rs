//! Expressions of `\set` and `\if`, read into trees.

use std::collections::HashMap;
use std::fmt;

use PgbenchFunction as F;

/// Deepest nesting, so that no expression overflows the stack.
const DEEPEST: u32 = 200;

/// Most operators outside of nesting. Those in a row, too, make an expression deep.
const MOST_OPERATORS: u32 = 1000;

/// Most arguments of a function.
const MOST_ARGUMENTS: usize = 16;

/// A value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PgbenchValue {
    /// NULL.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Double(f64),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum PgbenchExpression {
    /// A value.
    Constant(PgbenchValue),
    /// A variable by its number.
    Variable(u32),
    /// An operator or a function, and its arguments in the order in which they are evaluated.
    Call(PgbenchFunction, Vec<PgbenchExpression>),
}

/// Operators and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after what pgbench's manual calls it")]
pub enum PgbenchFunction {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    And,
    Or,
    Not,
    Is,
    /// Condition and value by turns, and the value without a condition last.
    Case,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Functions by name, with the fewest and the most arguments.
const FUNCTIONS: [(&str, PgbenchFunction, usize, usize); 21] = [
    ("abs", F::Abs, 1, 1),
    ("debug", F::Debug, 1, 1),
    ("double", F::Double, 1, 1),
    ("exp", F::Exp, 1, 1),
    ("greatest", F::Greatest, 1, MOST_ARGUMENTS),
    ("hash", F::HashMurmur2, 1, 2),
    ("hash_fnv1a", F::HashFnv1a, 1, 2),
    ("hash_murmur2", F::HashMurmur2, 1, 2),
    ("int", F::Int, 1, 1),
    ("least", F::Least, 1, MOST_ARGUMENTS),
    ("ln", F::Ln, 1, 1),
    ("mod", F::Modulo, 2, 2),
    ("permute", F::Permute, 2, 3),
    ("pi", F::Pi, 0, 0),
    ("pow", F::Power, 2, 2),
    ("power", F::Power, 2, 2),
    ("random", F::Random, 2, 2),
    ("random_exponential", F::RandomExponential, 3, 3),
    ("random_gaussian", F::RandomGaussian, 3, 3),
    ("random_zipfian", F::RandomZipfian, 3, 3),
    ("sqrt", F::Sqrt, 1, 1),
];

/// Words that are no functions.
const WORDS: [&str; 14] = [
    "and", "or", "not", "is", "isnull", "notnull", "null", "true", "false", "case", "when", "then",
    "else", "end",
];

/// Binding strength, from the weakest.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// The expression from byte `at` of `text` to the end of its line, which may be continued.
pub(super) fn parse(
    text: &str,
    at: usize,
    names: &mut VariableNames,
) -> Result<PgbenchExpression, ScriptFault> {
    let mut parser = Parser { tokens: Tokens::new(text, at)?, names, depth: 0, operators: 0 };
    let expression = parser.expression(0)?;
    match parser.tokens.peek() {
        Token::End => Ok(expression),
        _ => {
            let found = parser.tokens.found();
            Err(parser.tokens.fault(format!("an operator or the end of the line, not {found}")))
        }
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    names: &'a mut VariableNames,
    depth: u32,
    /// Operators so far.
    operators: u32,
}

impl Parser<'_> {
    /// An expression whose operators bind at least so strongly.
    fn expression(&mut self, least: u8) -> Result<PgbenchExpression, ScriptFault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.tokens.fault("the expression is nested too deeply"));
        }
        let mut left = self.operand()?;
        let mut is_compared = false;
        while let Some((strength, function)) = self.operator() {
            if strength < least {
                break;
            }
            if strength == COMPARE && is_compared {
                let what = "comparisons do not follow each other; write parentheses";
                return Err(self.tokens.fault(what));
            }
            self.operators += 1;
            if self.operators > MOST_OPERATORS {
                let what = format!("the expression has more than {MOST_OPERATORS} operators");
                return Err(self.tokens.fault(what));
            }
            is_compared = strength == COMPARE;
            let sign = self.tokens.take()?;
            left = match strength {
                IS => self.is(&sign, left)?,
                _ => {
                    let right = self.expression(strength + 1)?;
                    // Such as pgbench does, which matters to what draws random numbers.
                    let turned = matches!(sign, Token::Sign(">" | ">="));
                    let both = if turned { vec![right, left] } else { vec![left, right] };
                    PgbenchExpression::Call(function, both)
                }
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that follows, with its strength.
    fn operator(&self) -> Option<(u8, PgbenchFunction)> {
        Some(match self.tokens.peek() {
            Token::Word(word) => match word.as_str() {
                "or" => (OR, F::Or),
                "and" => (AND, F::And),
                "is" | "isnull" | "notnull" => (IS, F::Is),
                _ => return None,
            },
            Token::Sign(sign) => match *sign {
                "=" => (COMPARE, F::Equal),
                "<>" => (COMPARE, F::NotEqual),
                "<" | ">" => (COMPARE, F::Less),
                "<=" | ">=" => (COMPARE, F::LessOrEqual),
                "|" => (BITS, F::BitOr),
                "#" => (BITS, F::BitXor),
                "&" => (BITS, F::BitAnd),
                "<<" => (BITS, F::ShiftLeft),
                ">>" => (BITS, F::ShiftRight),
                "+" => (SUM, F::Add),
                "-" => (SUM, F::Subtract),
                "*" => (PRODUCT, F::Multiply),
                "/" => (PRODUCT, F::Divide),
                "%" => (PRODUCT, F::Modulo),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Parses the words after IS, ISNULL or NOTNULL.
    fn is(
        &mut self,
        sign: &Token,
        left: PgbenchExpression,
    ) -> Result<PgbenchExpression, ScriptFault> {
        let (is_not, value) = match sign {
            Token::Word(word) if word == "isnull" => (false, PgbenchValue::Null),
            Token::Word(word) if word == "notnull" => (true, PgbenchValue::Null),
            _ => {
                let is_not = self.tokens.take_word("not")?;
                let value = self.word_value().ok_or_else(|| {
                    let found = self.tokens.found();
                    self.tokens.fault(format!("NULL, TRUE or FALSE after IS, not {found}"))
                })?;
                self.tokens.take()?;
                (is_not, value)
            }
        };
        let both = vec![left, PgbenchExpression::Constant(value)];
        let is = PgbenchExpression::Call(F::Is, both);
        Ok(if is_not { PgbenchExpression::Call(F::Not, vec![is]) } else { is })
    }

    /// The value that the next word stands for.
    fn word_value(&self) -> Option<PgbenchValue> {
        let Token::Word(word) = self.tokens.peek() else { return None };
        match word.as_str() {
            "null" => Some(PgbenchValue::Null),
            "true" => Some(PgbenchValue::Boolean(true)),
            "false" => Some(PgbenchValue::Boolean(false)),
            _ => None,
        }
    }

    fn operand(&mut self) -> Result<PgbenchExpression, ScriptFault> {
        let constant = PgbenchExpression::Constant;
        if let Some(value) = self.word_value() {
            self.tokens.take()?;
            return Ok(constant(value));
        }
        let wanted = |parser: &Self| {
            let found = parser.tokens.found();
            parser.tokens.fault(format!("a value, not {found}"))
        };
        match self.tokens.peek().clone() {
            Token::Integer(number) => {
                self.tokens.take()?;
                Ok(constant(PgbenchValue::Integer(number)))
            }
            Token::Double(number) => {
                self.tokens.take()?;
                Ok(constant(PgbenchValue::Double(number)))
            }
            Token::Variable(name) => {
                self.tokens.take()?;
                Ok(PgbenchExpression::Variable(self.names.number(&name)))
            }
            Token::Word(word) if word == "not" => {
                self.tokens.take()?;
                Ok(PgbenchExpression::Call(F::Not, vec![self.expression(NOT)?]))
            }
            Token::Word(word) if word == "case" => {
                self.tokens.take()?;
                self.case()
            }
            Token::Word(word) if !WORDS.contains(&word.as_str()) => self.call(&word),
            Token::Sign(sign @ ("(" | "+" | "-" | "~")) => {
                self.tokens.take()?;
                self.prefixed(sign)
            }
            Token::MinusLeast => {
                Err(self.tokens.fault("9223372036854775808 is no whole number of 64 bits"))
            }
            Token::Word(_) | Token::Sign(_) | Token::End => Err(wanted(self)),
        }
    }

    /// Parses the expression after a parenthesis or a sign.
    fn prefixed(&mut self, sign: &str) -> Result<PgbenchExpression, ScriptFault> {
        let number = |number| PgbenchExpression::Constant(PgbenchValue::Integer(number));
        match sign {
            "(" => {
                let inner = self.expression(0)?;
                self.close(")")?;
                Ok(inner)
            }
            "+" => self.expression(SIGN),
            "-" if *self.tokens.peek() == Token::MinusLeast => {
                self.tokens.take()?;
                Ok(number(i64::MIN))
            }
            "-" => {
                let both = vec![number(0), self.expression(SIGN)?];
                Ok(PgbenchExpression::Call(F::Subtract, both))
            }
            _ => {
                let both = vec![number(-1), self.expression(SUM)?];
                Ok(PgbenchExpression::Call(F::BitXor, both))
            }
        }
    }

    fn close(&mut self, sign: &str) -> Result<(), ScriptFault> {
        if self.tokens.take_sign(sign)? {
            Ok(())
        } else {
            let found = self.tokens.found();
            Err(self.tokens.fault(format!("`{sign}`, not {found}")))
        }
    }

    fn case(&mut self) -> Result<PgbenchExpression, ScriptFault> {
        let mut parts = Vec::new();
        let mut wanted = "WHEN";
        while self.tokens.take_word("when")? {
            parts.push(self.expression(0)?);
            if !self.tokens.take_word("then")? {
                let found = self.tokens.found();
                return Err(self.tokens.fault(format!("THEN, not {found}")));
            }
            parts.push(self.expression(0)?);
            wanted = "WHEN, ELSE or END";
        }
        let mut last = PgbenchExpression::Constant(PgbenchValue::Null);
        if !parts.is_empty() && self.tokens.take_word("else")? {
            last = self.expression(0)?;
            wanted = "END";
        }
        if parts.is_empty() || !self.tokens.take_word("end")? {
            let found = self.tokens.found();
            return Err(self.tokens.fault(format!("{wanted}, not {found}")));
        }
        parts.push(last);
        Ok(PgbenchExpression::Call(F::Case, parts))
    }

    fn call(&mut self, name: &str) -> Result<PgbenchExpression, ScriptFault> {
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|row| row.0 == name) else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|row| row.0).collect();
            let known = known.join(", ");
            return Err(self.tokens.fault(format!("`{name}` is no function; there are {known}")));
        };
        let place = self.tokens.place();
        self.tokens.take()?;
        self.close("(")?;
        let mut arguments = Vec::new();
        if !self.tokens.take_sign(")")? {
            loop {
                arguments.push(self.expression(0)?);
                if !self.tokens.take_sign(",")? {
                    break;
                }
            }
            self.close(")")?;
        }
        let given = arguments.len();
        if !(*least..=*most).contains(&given) {
            let wanted = match (least, most) {
                (least, most) if least == most => least.to_string(),
                _ => format!("{least} to {most}"),
            };
            let what = format!("`{name}` takes {wanted} arguments, not {given}");
            return Err(self.tokens.fault_at(place, what));
        }
        let has_seed = matches!(function, F::HashFnv1a | F::HashMurmur2 | F::Permute);
        if has_seed && given < *most {
            let seed = self.names.number("default_seed");
            arguments.push(PgbenchExpression::Variable(seed));
        }
        Ok(PgbenchExpression::Call(*function, arguments))
    }
}

// The words of an expression.

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
