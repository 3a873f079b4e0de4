//! Converts values of placeholders and names of dialects between scripts and the wire.

use rqps_embed::lua::Binding;
use rqps_model::dialect::Dialect;
use rqps_model::lua::LuaWork;
use rqps_wire::{Value, ValueType};

/// Most values of a statement that need no allocation.
const FEW: usize = 16;

/// True for a statement that changes the rows that it finds.
#[inline]
pub(super) fn may_miss(sql: &str) -> bool {
    let word = sql.trim_start().get(..6).unwrap_or_default();
    ["UPDATE", "DELETE", "INSERT", "REPLAC"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The name of a dialect in scripts.
pub(super) fn driver_name(dialect: Dialect, work: &LuaWork) -> &str {
    match dialect {
        Dialect::Postgres => "pgsql",
        Dialect::Sqlite if work.driver.is_empty() => "sqlite",
        Dialect::Sqlite => &work.driver,
        _ => "mysql",
    }
}

/// The type of a placeholder for such a value.
pub(super) fn type_of(value: Binding<'_>) -> ValueType {
    match value {
        Binding::Whole(_) => ValueType::Int,
        Binding::Decimal(_) => ValueType::AnyText,
        Binding::Text(_) | Binding::Null => ValueType::Text,
    }
}

/// Calls `act` with the values in wire form.
#[inline]
pub(super) fn with_values<'a, R>(
    given: impl ExactSizeIterator<Item = Binding<'a>>,
    act: impl FnOnce(&[Binding<'a>], &[Value<'_>]) -> R,
) -> R {
    let count = given.len();
    let (mut few, mut many) = ([Binding::Null; FEW], Vec::new());
    if count <= FEW {
        few.iter_mut().zip(given).for_each(|(place, value)| *place = value);
    } else {
        many.extend(given);
    }
    let bindings = if count <= FEW { &few[..count] } else { &many[..] };
    let decimals: Vec<String> = if bindings.iter().any(|one| matches!(one, Binding::Decimal(_))) {
        bindings.iter().map(decimal_text).collect()
    } else {
        Vec::new()
    };
    let value = |(number, binding): (usize, &Binding<'a>)| match *binding {
        Binding::Null => Value::Null,
        Binding::Whole(whole) => Value::Int(whole),
        Binding::Decimal(_) => Value::Text(decimals[number].as_bytes()),
        Binding::Text(text) => Value::Text(text),
    };
    if count <= FEW {
        let mut values = [Value::Null; FEW];
        let places = values.iter_mut().zip(bindings.iter().enumerate());
        places.for_each(|(place, one)| *place = value(one));
        return act(bindings, &values[..count]);
    }
    let values: Vec<Value<'_>> = bindings.iter().enumerate().map(value).collect();
    act(bindings, &values)
}

fn decimal_text(binding: &Binding<'_>) -> String {
    match binding {
        Binding::Decimal(number) => number.to_string(),
        _ => String::new(),
    }
}
