//! Evaluates expressions. Only an error allocates memory.

use std::f64::consts::PI;

use PgbenchFunction as F;
use PgbenchValue::{Boolean, Double, Integer, Null};

use crate::pgbench::driver::Variables;
use rqps_model::datagen::rng::Xoroshiro128;
use rqps_text::pgbench::{
    PgbenchAction, PgbenchExpression, PgbenchFunction, PgbenchProgram, PgbenchValue,
};

/// Most arguments of a function.
const MOST: usize = 16;

/// Smallest and largest exponent of zipfian numbers.
const ZIPFIAN: [f64; 2] = [1.001, 1000.0];

/// Smallest parameter of gaussian numbers.
const GAUSSIAN: f64 = 2.0;

/// The variables and the generator of expressions.
pub(super) struct Evaluation<'a> {
    pub(super) variables: &'a Variables,
    pub(super) names: &'a [String],
    pub(super) random: &'a mut Xoroshiro128,
}

impl Evaluation<'_> {
    /// The value of an expression.
    ///
    /// # Errors
    ///
    /// The reason why it has none.
    pub(super) fn value(&mut self, expression: &PgbenchExpression) -> Result<PgbenchValue, String> {
        match expression {
            PgbenchExpression::Constant(value) => Ok(*value),
            PgbenchExpression::Variable(number) => self.variables.value(*number).map_err(|why| {
                let name = self.names.get(*number as usize).map_or("", String::as_str);
                format!("variable `{name}` {why}")
            }),
            PgbenchExpression::Call(function, arguments) => match function {
                F::And | F::Or => self.connect(*function == F::And, arguments),
                F::Case => self.case(arguments),
                _ => self.call(*function, arguments),
            },
        }
    }

    /// True if a condition holds.
    ///
    /// # Errors
    ///
    /// As [`Evaluation::value`].
    pub(super) fn holds(&mut self, condition: &PgbenchExpression) -> Result<bool, String> {
        Ok(holds(self.value(condition)?))
    }

    /// AND and OR. If the left side decides, the right side is not evaluated, even if it would be
    /// NULL.
    fn connect(
        &mut self,
        is_and: bool,
        arguments: &[PgbenchExpression],
    ) -> Result<PgbenchValue, String> {
        for argument in arguments {
            let value = self.value(argument)?;
            if value == Null {
                return Ok(Null);
            }
            if boolean(value)? != is_and {
                return Ok(Boolean(!is_and));
            }
        }
        Ok(Boolean(is_and))
    }

    fn case(&mut self, arguments: &[PgbenchExpression]) -> Result<PgbenchValue, String> {
        for pair in arguments.chunks(2) {
            match pair {
                [condition, value] if self.holds(condition)? => return self.value(value),
                [otherwise] => return self.value(otherwise),
                _ => {}
            }
        }
        Ok(Null)
    }

    fn call(
        &mut self,
        function: F,
        arguments: &[PgbenchExpression],
    ) -> Result<PgbenchValue, String> {
        let mut values = [Null; MOST];
        let mut has_null = false;
        for (argument, value) in arguments.iter().zip(&mut values) {
            *value = self.value(argument)?;
            has_null |= *value == Null;
        }
        let values = &values[..arguments.len().min(MOST)];
        if has_null && function != F::Is && function != F::Debug {
            return Ok(Null);
        }
        match (function, values) {
            (F::Pi, _) => Ok(Double(std::f64::consts::PI)),
            (_, [one]) => unary(function, *one),
            (F::Greatest | F::Least, _) => extreme(values, function == F::Greatest),
            (_, [left, right]) => self.binary(function, *left, *right),
            (_, [first, second, third]) => self.ternary(function, *first, *second, *third),
            _ => Err("a function with a wrong number of arguments".to_owned()),
        }
    }

    fn binary(
        &mut self,
        function: F,
        left: PgbenchValue,
        right: PgbenchValue,
    ) -> Result<PgbenchValue, String> {
        match function {
            F::BitAnd | F::BitOr | F::BitXor | F::ShiftLeft | F::ShiftRight => {
                bits(function, left, right)
            }
            F::Is => Ok(Boolean(left == right)),
            F::Power => Ok(Double(double(left)?.powf(double(right)?))),
            F::HashFnv1a => Ok(Integer(fnv1a(whole(left)?, whole(right)?))),
            F::HashMurmur2 => Ok(Integer(murmur2(whole(left)?, whole(right)?))),
            F::Random => {
                let [least, most] = range(left, right)?;
                Ok(Integer(uniform(self.random, least, most)))
            }
            _ => arithmetic(function, left, right),
        }
    }

    fn ternary(
        &mut self,
        function: F,
        first: PgbenchValue,
        second: PgbenchValue,
        third: PgbenchValue,
    ) -> Result<PgbenchValue, String> {
        if function == F::Permute {
            let (number, size, seed) = (whole(first)?, whole(second)?, whole(third)?);
            return match size {
                ..=0 => Err("the size of a permutation must be greater than 0".to_owned()),
                _ => Ok(Integer(permuted(number, size, seed))),
            };
        }
        let [least, most] = range(first, second)?;
        let parameter = double(third)?;
        let wrong = |what: String| Err(format!("{what}, not {parameter}"));
        let draw = match function {
            F::RandomGaussian if parameter < GAUSSIAN => {
                return wrong(format!("the parameter of random_gaussian is at least {GAUSSIAN}"));
            }
            F::RandomGaussian => gaussian,
            F::RandomExponential if parameter <= 0.0 => {
                return wrong("the parameter of random_exponential is above 0".to_owned());
            }
            F::RandomExponential => exponential,
            _ if !(ZIPFIAN[0]..=ZIPFIAN[1]).contains(&parameter) => {
                let [least, most] = ZIPFIAN;
                return wrong(format!("the parameter of random_zipfian is {least} to {most}"));
            }
            _ => zipfian,
        };
        Ok(Integer(draw(self.random, least, most, parameter)))
    }
}

/// The range of a random function.
fn range(least: PgbenchValue, most: PgbenchValue) -> Result<[i64; 2], String> {
    let (least, most) = (whole(least)?, whole(most)?);
    if least > most {
        return Err(format!("the range of random numbers from {least} to {most} is empty"));
    }
    match most.checked_sub(least).and_then(|span| span.checked_add(1)) {
        Some(_) => Ok([least, most]),
        None => Err(format!("the range of random numbers from {least} to {most} is too large")),
    }
}

fn unary(function: F, value: PgbenchValue) -> Result<PgbenchValue, String> {
    Ok(match function {
        F::Not => Boolean(!boolean(value)?),
        F::Debug => value,
        F::Abs => match value {
            Double(number) => Double(number.abs()),
            other => Integer(whole(other)?.wrapping_abs()),
        },
        F::Int => Integer(whole(value)?),
        F::Double => Double(double(value)?),
        F::Sqrt => Double(double(value)?.sqrt()),
        F::Ln => Double(double(value)?.ln()),
        F::Exp => Double(double(value)?.exp()),
        F::Greatest | F::Least => extreme(&[value], true)?,
        _ => return Err("a function with a wrong number of arguments".to_owned()),
    })
}

// Operators on values: 64-bit whole numbers with overflow errors, doubles, NULL.

/// The name of a value's type, for messages.
fn kind(value: PgbenchValue) -> &'static str {
    match value {
        Null => "NULL",
        Boolean(_) => "a boolean",
        Integer(_) => "a whole number",
        Double(_) => "a double",
    }
}

/// Converts to a whole number; a double is rounded, halves to the even number.
pub(super) fn whole(value: PgbenchValue) -> Result<i64, String> {
    match value {
        Integer(number) => Ok(number),
        Double(number) => {
            let rounded = number.round_ties_even();
            // 2⁶³ is exact as a double, and just too large.
            let fits = rounded >= i64::MIN as f64 && rounded < -(i64::MIN as f64);
            if fits {
                Ok(rounded as i64)
            } else {
                Err(format!("double to int overflow for {number}"))
            }
        }
        other => Err(format!("cannot take {} as a whole number", kind(other))),
    }
}

/// Converts to a double.
pub(super) fn double(value: PgbenchValue) -> Result<f64, String> {
    match value {
        Double(number) => Ok(number),
        Integer(number) => Ok(number as f64),
        other => Err(format!("cannot take {} as a double", kind(other))),
    }
}

/// Returns a boolean; any other type is an error.
pub(super) fn boolean(value: PgbenchValue) -> Result<bool, String> {
    match value {
        Boolean(truth) => Ok(truth),
        other => Err(format!("cannot take {} as a boolean", kind(other))),
    }
}

/// True if a value holds as a condition: numbers except zero do, NULL does not.
pub(super) fn holds(value: PgbenchValue) -> bool {
    match value {
        Null => false,
        Boolean(truth) => truth,
        Integer(number) => number != 0,
        Double(number) => number != 0.0,
    }
}

/// Computes `+ - * / %` and comparisons.
pub(super) fn arithmetic(
    function: F,
    left: PgbenchValue,
    right: PgbenchValue,
) -> Result<PgbenchValue, String> {
    let is_double = |value| matches!(value, Double(_));
    if function != F::Modulo && (is_double(left) || is_double(right)) {
        return of_doubles(function, double(left)?, double(right)?);
    }
    of_whole(function, whole(left)?, whole(right)?)
}

fn of_doubles(function: F, left: f64, right: f64) -> Result<PgbenchValue, String> {
    Ok(match function {
        F::Add => Double(left + right),
        F::Subtract => Double(left - right),
        F::Multiply => Double(left * right),
        F::Divide => Double(left / right),
        F::Equal => Boolean(left == right),
        F::NotEqual => Boolean(left != right),
        F::Less => Boolean(left < right),
        _ => Boolean(left <= right),
    })
}

fn of_whole(function: F, left: i64, right: i64) -> Result<PgbenchValue, String> {
    let in_range = |result: Option<i64>, what: &str| {
        result.map(Integer).ok_or_else(|| format!("bigint {what} out of range"))
    };
    match function {
        F::Add => in_range(left.checked_add(right), "add"),
        F::Subtract => in_range(left.checked_sub(right), "sub"),
        F::Multiply => in_range(left.checked_mul(right), "mul"),
        F::Divide | F::Modulo if right == 0 => Err("division by zero".to_owned()),
        F::Divide => in_range(left.checked_div(right), "div"),
        F::Modulo => Ok(Integer(left.wrapping_rem(right))),
        F::Equal => Ok(Boolean(left == right)),
        F::NotEqual => Ok(Boolean(left != right)),
        F::Less => Ok(Boolean(left < right)),
        _ => Ok(Boolean(left <= right)),
    }
}

/// Computes `& | # << >>` of whole numbers.
pub(super) fn bits(
    function: F,
    left: PgbenchValue,
    right: PgbenchValue,
) -> Result<PgbenchValue, String> {
    let (left, right) = (whole(left)?, whole(right)?);
    Ok(Integer(match function {
        F::BitAnd => left & right,
        F::BitOr => left | right,
        F::BitXor => left ^ right,
        // Processors use six bits of the distance.
        F::ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }))
}

/// The smallest or the greatest value.
fn extreme(values: &[PgbenchValue], is_greatest: bool) -> Result<PgbenchValue, String> {
    if values.iter().any(|value| matches!(value, Double(_))) {
        let mut best = double(values[0])?;
        for value in &values[1..] {
            let value = double(*value)?;
            if if is_greatest { value > best } else { value < best } {
                best = value;
            }
        }
        return Ok(Double(best));
    }
    let mut best = whole(values[0])?;
    for value in &values[1..] {
        let value = whole(*value)?;
        best = if is_greatest { best.max(value) } else { best.min(value) };
    }
    Ok(Integer(best))
}

// Random numbers, hashes and permutations, computed as in pgbench 15 and later.

/// A uniform number from `least` to `most`.
#[inline]
pub(super) fn uniform(random: &mut Xoroshiro128, least: i64, most: i64) -> i64 {
    least.wrapping_add(random.up_to(most.wrapping_sub(least) as u64) as i64)
}

/// The number at a share (0 to 1) of the range.
fn at_share(least: i64, most: i64, share: f64) -> i64 {
    let numbers = (most - least + 1) as f64;
    least + (numbers * share) as i64
}

/// Exponentially distributed; the distribution is cut at `parameter`. Small numbers are more
/// frequent.
pub(super) fn exponential(random: &mut Xoroshiro128, least: i64, most: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let drawn = 1.0 - random.fraction();
    let share = -(cut + (1.0 - cut) * drawn).ln() / parameter;
    at_share(least, most, share)
}

/// Normally distributed; the distribution is cut at `parameter` standard deviations.
pub(super) fn gaussian(random: &mut Xoroshiro128, least: i64, most: i64, parameter: f64) -> i64 {
    loop {
        let length = 1.0 - random.fraction();
        let angle = 1.0 - random.fraction();
        let deviation = (-2.0 * length.ln()).sqrt() * (2.0 * PI * angle).sin();
        if deviation >= -parameter && deviation < parameter {
            let share = (deviation + parameter) / (parameter * 2.0);
            return at_share(least, most, share);
        }
    }
}

/// Zipf distributed: rank k, from `least` on, with a probability in proportion to k^−exponent
/// (Devroye's rejection for exponents above 1).
pub(super) fn zipfian(random: &mut Xoroshiro128, least: i64, most: i64, exponent: f64) -> i64 {
    let ranks = most - least + 1;
    if ranks <= 1 {
        return least;
    }
    let below = exponent - 1.0;
    let bound = 2f64.powf(below);
    loop {
        let first = random.fraction();
        let second = random.fraction();
        let rank = first.powf(-1.0 / below).floor();
        let ratio = (1.0 + 1.0 / rank).powf(below);
        let is_under = second * rank * (ratio - 1.0) / (bound - 1.0) <= ratio / bound;
        if is_under && rank <= ranks as f64 {
            return least - 1 + rank as i64;
        }
    }
}

/// FNV-1a of the eight octets of a number, from the lowest.
pub(super) fn fnv1a(number: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mix = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(PRIME);
    number.to_le_bytes().into_iter().fold(BASIS ^ seed as u64, mix) as i64
}

/// 64-bit MurmurHash2 of a number (by Austin Appleby, public domain).
fn murmur2(number: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut word = (number as u64).wrapping_mul(FACTOR);
    word ^= word >> SHIFT;
    word = word.wrapping_mul(FACTOR);
    let mut hash = seed as u64 ^ FACTOR.wrapping_mul(8);
    hash = (hash ^ word).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Rounds of the permutation.
const ROUNDS: u32 = 6;

/// The position of `number` in the permutation of `size` numbers by `seed`.
pub(super) fn permuted(number: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Xoroshiro128::seeded(seed as u64);
    let size = size as u64;
    // C divides it as an unsigned number.
    let mut place = number as u64 % size;
    let half = HalfPermutation { bits: size.ilog2(), mask: (1u64 << size.ilog2()) - 1 };
    for _ in 0..ROUNDS {
        place = half.scatter(place, &mut random);
        let mirrored = half.scatter(size - 1 - place, &mut random);
        place = size - 1 - mirrored;
        let offset = random.up_to(size - 1);
        // Both are less than 2⁶³.
        place = (place + offset) % size;
    }
    place as i64
}

/// Scatters numbers below the largest power of two up to the size.
struct HalfPermutation {
    bits: u32,
    mask: u64,
}

impl HalfPermutation {
    /// Draws in any case; scatters the number if it is below the power of two.
    fn scatter(&self, number: u64, random: &mut Xoroshiro128) -> u64 {
        let factor = (random.next_u64() & self.mask) | 1;
        let toggled = random.next_u64() & self.mask;
        if number > self.mask {
            return number;
        }
        let mixed = (number.wrapping_mul(factor) ^ toggled) & self.mask;
        ((mixed << 1) & self.mask) | (mixed >> (self.bits - 1))
    }
}

// An entry for the fuzz targets (`fuzz/`): expressions of a script of somebody else's, evaluated.
// Nothing else calls it.

/// Evaluates every expression of a script once.
pub fn evaluate(program: &PgbenchProgram, names: &[String]) {
    let mut variables = Variables::new(names.len());
    let random = &mut Xoroshiro128::seeded(7);
    for command in &program.commands {
        match &command.action {
            PgbenchAction::Set { variable, value } => {
                let found = Evaluation { variables: &variables, names, random }.value(value);
                if let Ok(value) = found {
                    variables.set(*variable, value);
                }
            }
            PgbenchAction::JumpUnless { condition, .. } => {
                let _ = Evaluation { variables: &variables, names, random }.holds(condition);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::driver::{self, StepScripts};
    use rqps_model::dialect::Dialect;
    use rqps_model::pgbench::{PgbenchProtocol, PgbenchWork, WeightedText};

    /// Expressions with the values that the real program printed.
    const TABLE: &str = include_str!("../../../../rqps/tests/data/pgbench/expressions.tsv");

    /// The value of an expression as `debug()` prints it; `error` for an error.
    fn evaluated(expression: &str) -> String {
        let defined = [
            ("answer", "42"),
            ("half", "0.5"),
            ("yes", "yes"),
            ("nothing", "null"),
            ("word", "4711"),
            ("o", "o"),
            ("scale", "1"),
        ];
        let text = format!("\\set x debug({expression})\n");
        let work = PgbenchWork {
            scripts: vec![WeightedText { name: "test".to_owned(), weight: 1, text }],
            protocol: PgbenchProtocol::Simple,
            define: defined.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            max_tries: 1,
            continue_on_error: false,
            connect: false,
            vacuum: false,
        };
        let Ok(scripts) = StepScripts::read(&work, Dialect::Postgres, 7, 1) else {
            return "error".to_owned();
        };
        let PgbenchAction::Set { value, .. } = &scripts.scripts[0].program.commands[0].action
        else {
            panic!("no \\set in {expression}");
        };
        let [mut random, _] = scripts.generators(0);
        let variables = scripts.variables(0);
        let names = scripts.names.all();
        let mut evaluation = Evaluation { variables: &variables, names, random: &mut random };
        let Ok(value) = evaluation.value(value) else { return "error".to_owned() };
        let kind = match value {
            Null => return "null".to_owned(),
            Boolean(_) => "boolean",
            Integer(_) => "int",
            Double(_) => "double",
        };
        let mut text = Vec::new();
        driver::spell(&mut text, value);
        format!("{kind} {}", String::from_utf8_lossy(&text))
    }

    #[test]
    fn expressions_have_the_values_that_pgbench_gives_them() {
        let (mut wrong, mut count) = (Vec::new(), 0);
        for row in TABLE.lines().filter(|row| !row.starts_with("# ")) {
            let (expression, want) = row.split_once('\t').unwrap();
            let found = evaluated(expression);
            if found != want {
                wrong.push(format!("{expression}: {found}, not {want}"));
            }
            count += 1;
        }
        assert_eq!(wrong, [""; 0]);
        assert!(count > 200, "{count}");
    }

    #[test]
    fn values_are_those_of_pgbenchs_own_tests() {
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!([permuted(0, 2, 5431), permuted(1, 2, 5431), permuted(0, 2, 5433)], [0, 1, 1]);
        let size = 9_223_372_036_854_775_797;
        assert_eq!(permuted(size - 1, size, 5432), 520_382_784_483_822_430);
    }

    #[test]
    fn distributions_are_those_of_pgbenchs_own_tests() {
        let mut random = Xoroshiro128::seeded(5432).branch();
        assert_eq!(uniform(&mut random, 10, 19), 17);
        assert_eq!(exponential(&mut random, 100, 199, 10.0), 104);
        assert_eq!(gaussian(&mut random, 1000, 1999, 10.0), 1498);
        assert_eq!(zipfian(&mut random, 1, 9, 1.3), 3);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        for size in [1, 2, 3, 7, 64, 100] {
            let mut all: Vec<i64> = (0..size).map(|number| permuted(number, size, 7)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..size).collect::<Vec<i64>>());
        }
    }
}
