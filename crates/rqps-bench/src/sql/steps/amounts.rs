//! Numbers of a workload file: literals, variables, sums and products.

use std::collections::BTreeMap;

use rqps_model::sql_workload::Amount;

/// The variables of a workload.
pub(super) struct Variables<'a>(pub(super) &'a BTreeMap<String, i64>);

impl Variables<'_> {
    /// A whole number.
    pub(super) fn whole(&self, amount: &Amount) -> Result<i64, String> {
        match amount {
            Amount::Whole(number) => Ok(*number),
            Amount::Decimal(number) => Err(format!("`{number}` is not a whole number")),
            Amount::Text(text) => self.formula(text),
        }
    }

    /// A number with or without a fraction.
    pub(super) fn decimal(&self, amount: &Amount) -> Result<f64, String> {
        match amount {
            Amount::Decimal(number) => Ok(*number),
            other => self.whole(other).map(|number| number as f64),
        }
    }

    fn formula(&self, text: &str) -> Result<i64, String> {
        // A minus at the beginning is a sign.
        let place = text.char_indices().skip(1).find(|(_, letter)| "*+-".contains(*letter));
        let Some((at, sign)) = place else { return self.term(text.trim()) };
        let (left, right) = (self.term(text[..at].trim())?, self.term(text[at + 1..].trim())?);
        let result = match sign {
            '*' => left.checked_mul(right),
            '+' => left.checked_add(right),
            _ => left.checked_sub(right),
        };
        result.ok_or_else(|| format!("`{text}` is out of the range of 64 bits"))
    }

    fn term(&self, text: &str) -> Result<i64, String> {
        if let Some(number) = self.0.get(text) {
            return Ok(*number);
        }
        text.replace('_', "").parse().map_err(|_| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "there are no [variables]".to_owned()
            } else {
                format!("variables are {}", known.join(", "))
            };
            format!("`{text}` is neither a whole number nor a variable; {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_variables_and_one_operation() {
        let variables = BTreeMap::from([("rows".to_owned(), 100)]);
        let value = |text: &str| Variables(&variables).whole(&Amount::Text(text.to_owned()));
        assert_eq!(value("rows"), Ok(100));
        assert_eq!(value("rows*10"), Ok(1000));
        assert_eq!(value("rows - 1"), Ok(99));
        assert_eq!(value("-5 + rows"), Ok(95));
        assert_eq!(value("1_000"), Ok(1000));
        let unknown = value("row").unwrap_err();
        assert_eq!(unknown, "`row` is neither a whole number nor a variable; variables are rows");
        assert!(value("9223372036854775807+1").unwrap_err().contains("64 bits"));
    }
}
