//! The variables of one client.

use super::numbers;
use rqps_text::pgbench::PgbenchValue;

/// The content of a variable.
#[derive(Clone, Debug, Default)]
struct Variable {
    content: Content,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Content {
    #[default]
    Unset,
    /// Only a text; an expression parses it when needed.
    Text,
    /// Only a value; its text is made when needed.
    Value(PgbenchValue),
    /// A value with its text.
    Both(PgbenchValue),
}

/// The variables of one client by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables(Vec<Variable>);

impl Variables {
    /// Makes this number of variables, none set.
    pub(super) fn new(count: usize) -> Variables {
        Variables(vec![Variable::default(); count])
    }

    /// Sets a variable to a value.
    #[inline]
    pub(super) fn set(&mut self, number: u32, value: PgbenchValue) {
        self.0[number as usize].content = Content::Value(value);
    }

    /// Sets a variable to a text.
    pub(super) fn set_text(&mut self, number: u32, text: &[u8]) {
        let variable = &mut self.0[number as usize];
        variable.text.clear();
        variable.text.extend_from_slice(text);
        variable.content = Content::Text;
    }

    /// Makes the text of a variable.
    #[inline]
    pub(super) fn spell(&mut self, number: u32) {
        let variable = &mut self.0[number as usize];
        if let Content::Value(value) = variable.content {
            variable.text.clear();
            numbers::spell(&mut variable.text, value);
            variable.content = Content::Both(value);
        }
    }

    /// The text that [`Variables::spell`] made; `None` if the variable is not set.
    #[inline]
    pub(super) fn text(&self, number: u32) -> Option<&[u8]> {
        let variable = &self.0[number as usize];
        match variable.content {
            Content::Unset => None,
            Content::Text | Content::Value(_) | Content::Both(_) => Some(&variable.text),
        }
    }

    /// The value of a variable.
    ///
    /// # Errors
    ///
    /// It is not set, or its text is not a value. The error completes a sentence that begins with
    /// the name of the variable.
    #[inline]
    pub(super) fn value(&self, number: u32) -> Result<PgbenchValue, String> {
        let variable = &self.0[number as usize];
        match variable.content {
            Content::Value(value) | Content::Both(value) => Ok(value),
            Content::Unset => Err("is not set".to_owned()),
            Content::Text => numbers::read(&variable.text).ok_or_else(|| {
                let text = String::from_utf8_lossy(&variable.text);
                format!("holds `{text}`, which is not a value of an expression")
            }),
        }
    }
}
