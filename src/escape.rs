//! Text as JSON: file contents and names on the wire, and names shown in rows.
//!
//! Never shortens or judges. Beyond what JSON demands, U+0085, U+2028 and U+2029 are escaped, as
//! line readers of clients (Node's `readline`, Python's `splitlines`) break a message at them.

use std::borrow::Cow;
use std::io::{Result, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// A value as compact JSON that no reader of lines breaks.
pub(crate) fn to_json(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    append(&mut out, value);
    out
}

/// An object of JSON texts in this order, which `json!` would sort; one that is null is left out.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for (name, value) in members.into_iter().filter(|(_, value)| value != b"null") {
        append(&mut out, name);
        out.push(b':');
        out.extend(value);
        out.push(b',');
    }
    out.pop_if(|last| *last == b',');
    out.push(b'}');
    out
}

/// Appends `text` as the inside of a JSON string, without quotes.
pub(crate) fn escape_into(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 16);
    write(out, text, "");
}

fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    write(out, value, "\"");
}

fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized), quote: &'static str) {
    // Neither a `Vec` nor our values, whose keys are strings, can fail.
    let _ = value.serialize(&mut Serializer::with_formatter(out, LineSafe { quote }));
}

struct LineSafe {
    quote: &'static str, // around strings
}

impl Formatter for LineSafe {
    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> Result<()> {
        out.write_all(self.quote.as_bytes())
    }

    fn end_string<W: ?Sized + Write>(&mut self, out: &mut W) -> Result<()> {
        out.write_all(self.quote.as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> Result<()> {
        // ASCII has none of them, and is told apart many times faster.
        let breaks = if text.is_ascii() { "" } else { text };
        let mut written = 0;
        for (at, separator) in breaks.match_indices(['\u{85}', '\u{2028}', '\u{2029}']) {
            out.write_all(&text.as_bytes()[written..at])?;
            separator.chars().try_for_each(|c| write!(out, "\\u{:04x}", u32::from(c)))?;
            written = at + separator.len();
        }
        out.write_all(&text.as_bytes()[written..])
    }
}

/// `text` as one JSON string with quotes, in which nothing can deceive a reader: invisible and
/// direction-changing characters are `\uXXXX` too.
pub(crate) fn json_string(text: &str) -> String {
    let mut quoted = String::new();
    for character in serde_json::json!(text).to_string().chars() {
        if is_deceptive(character) {
            let units = character.encode_utf16(&mut [0; 2]).to_vec();
            quoted.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            quoted.push(character);
        }
    }
    quoted
}

/// A path as a row shows it: as one JSON string when it could be misread.
pub(crate) fn shown(path: &str) -> Cow<'_, str> {
    let padded = format!(" {path} ");
    let misleading = ["  ", "\"", " -> "].iter().any(|part| padded.contains(part))
        || path.contains(is_deceptive);
    if misleading { Cow::Owned(json_string(path)) } else { Cow::Borrowed(path) }
}

/// Controls, and what is invisible, changes the direction of text or separates lines.
fn is_deceptive(character: char) -> bool {
    matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
