//! Expressions of `\set` and `\if`, read into trees.

use super::tokens::{ScriptFault, Token, Tokens};
use crate::pgbench::tokens::VariableNames;

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

use PgbenchFunction as F;

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
