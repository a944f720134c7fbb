//! Text as JSON string content: file contents and names on the wire, and names shown in rows.
//!
//! Never shortens or judges. Beyond what JSON demands, U+0085, U+2028 and U+2029 are escaped, as
//! line readers of clients (Node's `readline`, Python's `splitlines`) break a message at them.

use std::borrow::Cow;

/// Appends `text` as the inside of a JSON string, without quotes.
pub(crate) fn escape_into(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 16);
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let mut plain = 0;
        if let Some(word) = rest.first_chunk() {
            plain = plain_bytes(u64::from_le_bytes(*word));
            put(out, *word, plain);
            if plain == 8 {
                rest = &rest[8..];
                continue;
            }
        }
        let (taken, (escape, length)) = match &rest[plain..] {
            [0xc2, 0x85, ..] => (2, (*b"\\u0085  ", 6)),
            [0xe2, 0x80, 0xa8, ..] => (3, (*b"\\u2028  ", 6)),
            [0xe2, 0x80, 0xa9, ..] => (3, (*b"\\u2029  ", 6)),
            [byte, ..] => (1, ESCAPES[usize::from(*byte)]),
            [] => break,
        };
        put(out, escape, length.into());
        rest = &rest[plain + taken..];
    }
}

/// Appends the beginning of a word. All of it is, and then cut off: a call of `memcpy` for each
/// line of source text would cost more than the scan.
fn put(out: &mut Vec<u8>, word: [u8; 8], length: usize) {
    out.extend_from_slice(&word);
    out.truncate(out.len() - 8 + length);
}

/// How many bytes of the word come before one that JSON wants escaped, or C2 or E2.
fn plain_bytes(word: u64) -> usize {
    let each = |byte: u8| u64::from_le_bytes([byte; 8]);
    // Marks, by its high bit, what is less, as subtracting borrows from it; behind the first such
    // byte others may be marked without reason.
    let below = |word: u64, limit| word.wrapping_sub(each(limit)) & !word & each(0x80);
    let equal = |word: u64, byte| below(word ^ each(byte), 1);
    let escapes = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
    (escapes | equal(word | each(0x20), 0xe2)).trailing_zeros() as usize / 8
}

/// What stands for each byte, padded so that it is copied as one word, and its real length.
static ESCAPES: [([u8; 8], u8); 256] = {
    let mut table = [([0; 8], 0); 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = escaped(byte as u8);
        byte += 1;
    }
    table
};

const fn escaped(byte: u8) -> ([u8; 8], u8) {
    let digits = b"0123456789abcdef";
    let (high, low) = (digits[byte as usize >> 4], digits[byte as usize & 15]);
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        ..0x20 => return ([b'\\', b'u', b'0', b'0', high, low, 0, 0], 6),
        _ => return ([byte, 0, 0, 0, 0, 0, 0, 0], 1),
    };
    ([b'\\', letter, 0, 0, 0, 0, 0, 0], 2)
}

/// `text` as one JSON string with quotes, in which nothing can deceive a reader: besides the
/// escapes of [`escape_into`], invisible and direction-changing characters are `\uXXXX`.
pub(crate) fn json_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte @ ..0x7f) => {
                let (bytes, length) = escaped(byte);
                quoted.extend(bytes.iter().take(length.into()).copied().map(char::from));
            }
            _ if is_deceptive(character) => {
                let units = character.encode_utf16(&mut [0; 2]).to_vec();
                quoted.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A path as a row shows it: as one JSON string when it could be misread.
pub(crate) fn shown(path: &str) -> Cow<'_, str> {
    let misleading = path.trim_matches(' ') != path
        || ["  ", "\"", " -> "].iter().any(|part| path.contains(part))
        || path.ends_with(" ->")
        || path.starts_with("-> ")
        || path.contains(is_deceptive);
    if misleading { Cow::Owned(json_string(path)) } else { Cow::Borrowed(path) }
}

/// Controls, and what is invisible, changes the direction of text or separates lines.
fn is_deceptive(character: char) -> bool {
    matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
