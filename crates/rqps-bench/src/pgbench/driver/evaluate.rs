//! Evaluates expressions. Only an error allocates memory.

use super::arithmetic::{arithmetic, bits, boolean, double, extreme, holds, whole};
use super::functions;
use super::variables::Variables;
use rqps_model::datagen::xoroshiro::Xoroshiro128;
use rqps_text::pgbench::{PgbenchExpression, PgbenchFunction, PgbenchValue};

use PgbenchFunction as F;
use PgbenchValue::{Boolean, Double, Integer, Null};

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
            F::HashFnv1a => Ok(Integer(functions::fnv1a(whole(left)?, whole(right)?))),
            F::HashMurmur2 => Ok(Integer(functions::murmur2(whole(left)?, whole(right)?))),
            F::Random => {
                let [least, most] = range(left, right)?;
                Ok(Integer(functions::uniform(self.random, least, most)))
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
                _ => Ok(Integer(functions::permuted(number, size, seed))),
            };
        }
        let [least, most] = range(first, second)?;
        let parameter = double(third)?;
        let wrong = |what: String| Err(format!("{what}, not {parameter}"));
        let draw = match function {
            F::RandomGaussian if parameter < GAUSSIAN => {
                return wrong(format!("the parameter of random_gaussian is at least {GAUSSIAN}"));
            }
            F::RandomGaussian => functions::gaussian,
            F::RandomExponential if parameter <= 0.0 => {
                return wrong("the parameter of random_exponential is above 0".to_owned());
            }
            F::RandomExponential => functions::exponential,
            _ if !(ZIPFIAN[0]..=ZIPFIAN[1]).contains(&parameter) => {
                let [least, most] = ZIPFIAN;
                return wrong(format!("the parameter of random_zipfian is {least} to {most}"));
            }
            _ => functions::zipfian,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::driver::numbers;
    use crate::pgbench::driver::scripts::StepScripts;
    use rqps_model::dialect::Dialect;
    use rqps_model::pgbench::{PgbenchProtocol, PgbenchWork, WeightedText};
    use rqps_text::pgbench::PgbenchAction;

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
        numbers::spell(&mut text, value);
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
}
