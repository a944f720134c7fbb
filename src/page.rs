//! One page of a result: the payload within its budget, what was left out, and the header that says
//! so. Everything is measured before it is added; nothing is added and taken back.

use std::fmt::Display;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::disk::Fault;
use crate::escape::escape_into;
use crate::limits::RESULT_CHARS_MIN;
use crate::tool::Call;

/// Declares what a result may leave out, with the header's keys, in the order of the header.
macro_rules! omissions {
    ($($name:ident = $key:literal,)*) => {
        #[derive(Clone, Copy)]
        pub(crate) enum Omission { $($name),* }
        const OMISSIONS: [&str; [$($key),*].len()] = [$($key),*];
    };
}

omissions! {
    NotSearched = "not searched", Withheld = "withheld", Unreadable = "unreadable",
    NotUtf8 = "names not UTF-8", SpecialFile = "special files", Binary = "binary",
    LineNotUtf8 = "lines not UTF-8", TooLarge = "too large", TooDeep = "too deep",
    NotChecked = "not checked", PseudoFileSystem = "pseudo file systems",
    TooLong = "too long to show",
}

/// As what an entry that the disk does not give is counted.
impl From<Fault> for Omission {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::PseudoFileSystem => Self::PseudoFileSystem,
            _ => Self::Unreadable,
        }
    }
}

const NOISE_NAMES_MAX: usize = 5; // noise directories that a header names; others are a number

/// Counts of what a page leaves out.
#[derive(Clone, Default)]
pub(crate) struct Omitted {
    counts: [u64; OMISSIONS.len()],
    noise: Vec<String>, // the different names of noise directories, as they were met
}

impl Omitted {
    pub(crate) fn add(&mut self, omission: Omission, count: u64) {
        self.counts[omission as usize] += count;
    }

    /// A noise directory that is not entered.
    pub(crate) fn not_searched(&mut self, name: &str) {
        self.add(Omission::NotSearched, 1);
        if !self.noise.iter().any(|known| known == name) {
            self.noise.push(name.into());
        }
    }

    /// Adds the counts of another part of the same page.
    pub(crate) fn append(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        OMISSIONS.into_iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }

    fn noise_names(&self) -> String {
        let shown = &self.noise[..self.noise.len().min(NOISE_NAMES_MAX)];
        match self.noise.len() - shown.len() {
            0 => shown.join(", "),
            more => format!("{} and {more} other names", shown.join(", ")),
        }
    }
}

/// A successful result: its payload within the budget, and what the header says of it.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) out: Vec<u8>, // the payload, escaped as the inside of a JSON string
    chars_left: usize,
    bytes_left: usize,
    pub(crate) reserved: usize, // characters kept free for what is not yet known
    hash: Sha256,
    facts: String, // as they are printed
    pub(crate) omitted: Omitted,
    pub(crate) notes: Vec<&'static str>,
    pub(crate) next: Option<String>, // what to call, where that is not this tool with its cursor
    pub(crate) cursor: Option<String>,
    pub(crate) complete: bool, // false where something is missing without a way to go on
}

impl Page {
    /// An empty page: the smaller of the operator's page and `max_chars`, less the header.
    pub(crate) fn new(call: &Call<'_>, max_chars: Option<u64>, header_chars: usize) -> Self {
        let asked = max_chars.unwrap_or(u64::MAX).max(RESULT_CHARS_MIN);
        let chars = call.config.max_result_chars.min(asked) as usize;
        Self {
            chars_left: chars - header_chars - 1,
            bytes_left: call.reply_bytes_max.saturating_sub(header_chars + 2),
            complete: true,
            ..Self::default()
        }
    }

    /// Adds a fact to the header; callers add them in the order of the contract.
    pub(crate) fn fact(&mut self, key: &str, value: impl Display) {
        self.facts += &format!("; {key}: {value}");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The most bytes of text that could still fit.
    pub(crate) fn bytes_max(&self) -> usize {
        self.chars_left.saturating_mul(4).min(self.bytes_left)
    }

    /// Bytes of text that fit, whatever they are: none takes more than six escaped bytes.
    pub(crate) fn room(&self) -> usize {
        self.chars_left.min(self.bytes_left / 6).saturating_sub(self.reserved)
    }

    /// How many bytes of the text fit, ending at a character.
    pub(crate) fn fit(&self, text: &str) -> usize {
        let sure = text.len().min(self.room());
        // Of ASCII one byte is one character; only escaping could make it less.
        let exact =
            sure == text.len() || sure + self.reserved == self.chars_left && text.is_ascii();
        if exact { sure } else { self.fit_of(text.chars()) }
    }

    /// How many bytes of such characters fit, in the order in which they come.
    pub(crate) fn fit_of(&self, text: impl Iterator<Item = char>) -> usize {
        let mut chars = self.chars_left.saturating_sub(self.reserved);
        let (mut bytes, mut fit) = (self.bytes_left.saturating_sub(6 * self.reserved), 0);
        for character in text {
            let cost = escaped_bytes(character);
            if chars == 0 || bytes < cost {
                break;
            }
            (chars, bytes, fit) = (chars - 1, bytes - cost, fit + character.len_utf8());
        }
        fit
    }

    /// Adds text that is known to fit.
    pub(crate) fn put(&mut self, text: &str) {
        let before = self.out.len();
        escape_into(&mut self.out, text);
        self.chars_left = self.chars_left.saturating_sub(text.chars().count());
        self.bytes_left = self.bytes_left.saturating_sub(self.out.len() - before);
    }

    /// Hashes bytes as returned, where that is not done by [`Page::rows`].
    pub(crate) fn hash(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// Adds the text if all of it fits.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let fits = self.fit(text) == text.len();
        if fits {
            self.put(text);
        }
        fits
    }

    /// Adds rows that end in a newline, hashed as sent, if all of them fit.
    pub(crate) fn rows(&mut self, rows: &str) -> bool {
        let fits = self.add(rows);
        if fits {
            self.hash(rows.as_bytes());
        }
        fits
    }

    /// Adds a row that ends in a newline, or counts it as too long to show.
    pub(crate) fn row_or_count(&mut self, row: &str) {
        if !self.rows(row) {
            self.omitted.add(Omission::TooLong, 1);
        }
    }

    /// Without a hit, adds a line that says what was searched and by which rule.
    pub(crate) fn tell_no_match(&mut self, is_first: bool, rule: &str) {
        if self.is_empty() && self.omitted.counts[Omission::TooLong as usize] == 0 {
            let how = match (&self.cursor, is_first) {
                (Some(_), _) => "no match so far",
                (None, false) => "no further match",
                (None, true) => "no match",
            };
            self.rows(&format!("{how}: {rule}\n"));
        }
    }

    /// Puts text, for which room was reserved, at a place before what was added since.
    pub(crate) fn insert(&mut self, place: usize, text: &str) {
        let end = self.out.len();
        self.put(text);
        self.out[place..].rotate_left(end - place);
    }

    /// The finished result: the header, which never holds client or file text, the escaped payload,
    /// and the machine's half.
    pub(crate) fn finish(self) -> (String, Vec<u8>, Value) {
        let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 15)]);
        let hash = self.hash.finalize();
        let hash: String = hash.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect();
        let complete = self.complete && self.next.is_none() && self.cursor.is_none();
        let mut header = if complete { "complete" } else { "more" }.to_owned() + &self.facts;
        for (key, count) in self.omitted.counted() {
            let names = (key == OMISSIONS[0]).then(|| self.omitted.noise_names());
            header += &format!("; {key}: {}", names.unwrap_or_else(|| count.to_string()));
        }
        self.notes.iter().for_each(|note| header += &format!("; {note}"));
        header += &format!("; sha256: {hash}");
        for (key, value) in [("next", &self.next), ("cursor", &self.cursor)] {
            value.iter().for_each(|value| header += &format!("; {key}: {value}"));
        }
        let omitted = Value::from_iter(self.omitted.counted());
        let machine = json!({"complete": complete, "next_cursor": self.cursor,
            "content_hash": format!("sha256:{hash}"), "omitted": omitted});
        (header, self.out, machine)
    }
}

/// Bytes of a character inside a JSON string as [`escape_into`] writes it.
fn escaped_bytes(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' | '\u{85}' | '\u{2028}' | '\u{2029}' => 6,
        other => other.len_utf8(),
    }
}
