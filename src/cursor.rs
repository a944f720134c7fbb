//! Cursors: sealed positions that fail rather than tear. One holds numbers, a tag of the state that
//! was passed, and an HMAC over both, the tool and its arguments. It never holds a path and never
//! grants anything: policy and confinement are checked again on every page.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Code, Result, ToolError};
use crate::limits::CURSOR_CHARS_MAX;

const STATE_BYTES: usize = 5; // of the tag of a state
const MAC_CHARS: usize = 13; // of the authentication tag: 64 bits

/// The key of this process. It is made at start, never leaves, and dies with the process.
pub(crate) struct Seal(Hmac<Sha256>);

/// What a cursor depends on, folded together: its *binding*, the tool and its effective arguments,
/// or the *state*, what was given out so far.
#[derive(Clone)]
pub(crate) struct Tag(Hmac<Sha256>);

impl Tag {
    /// Adds one item to a state: its path and what else must not change, always as many numbers.
    pub(crate) fn add(&mut self, path: &str, numbers: &[u64]) {
        self.0.update(&(path.len() as u64).to_le_bytes()); // keeps neighbours apart
        self.0.update(path.as_bytes());
        numbers.iter().for_each(|number| self.0.update(&number.to_le_bytes()));
    }

    /// The binding with one more argument.
    pub(crate) fn with(mut self, argument: &str) -> Self {
        self.add(argument, &[]);
        self
    }

    fn first(&self, bytes: usize) -> u64 {
        let whole = self.0.clone().finalize().into_bytes();
        whole.iter().take(bytes).fold(0, |first, byte| first << 8 | u64::from(*byte))
    }
}

/// A position and the tag of the state before it, as a cursor holds them.
pub(crate) struct Position<const N: usize> {
    pub(crate) numbers: [u64; N],
    state: u64,
}

impl<const N: usize> Position<N> {
    /// `stale-cursor` unless what is passed again now is what was passed then.
    pub(crate) fn expect(&self, state: &Tag, advice: &str) -> Result<()> {
        if state.first(STATE_BYTES) == self.state { Ok(()) } else { Err(stale(advice)) }
    }
}

pub(crate) fn stale(advice: &str) -> ToolError {
    let why = format!("what was already given out has changed; {advice}");
    ToolError::new(Code::StaleCursor, why)
}

/// What a stale cursor of a walk asks for.
pub(crate) const START_AGAIN: &str = "leave cursor out to start again";

impl Seal {
    /// A fresh random key; an error when the system gives no random bytes.
    pub(crate) fn new() -> core::result::Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Hmac::new_from_slice(&key).map(Self).map_err(|_| getrandom::Error::UNEXPECTED)
    }

    /// A tag of what has that name: a tool, whose arguments are then added in a fixed order, or the
    /// state, still empty.
    pub(crate) fn tag(&self, name: &str) -> Tag {
        Tag(self.0.clone()).with(name)
    }

    /// The state of a single file, from what must not change of it.
    pub(crate) fn file_state(&self, stamp: &[u64]) -> Tag {
        let mut state = self.tag("state");
        state.add("", stamp);
        state
    }

    /// The text of a cursor; `limit-exceeded` if its numbers are too large for one.
    pub(crate) fn seal(binding: &Tag, numbers: &[u64], state: &Tag) -> Result<String> {
        let numbers = [numbers, &[state.first(STATE_BYTES)]].concat();
        let text = encode(&numbers, binding.clone().with(&format!("{numbers:?}")).first(8));
        let why = "the position is too far for a cursor; narrow path or glob";
        let fits = text.len() <= CURSOR_CHARS_MAX;
        fits.then_some(text).ok_or_else(|| ToolError::new(Code::LimitExceeded, why))
    }

    /// The position in a cursor that this process sealed under the same binding.
    pub(crate) fn open<const N: usize>(binding: &Tag, text: &str) -> Result<Position<N>> {
        let position = || {
            let (numbers, mac) = decode(text)?;
            let sealed = binding.clone().with(&format!("{numbers:?}"));
            sealed.0.verify_truncated_left(&mac.to_be_bytes()).ok()?;
            let (state, numbers) = numbers.split_last()?;
            Some(Position { numbers: numbers.try_into().ok()?, state: *state })
        };
        let why = "this is no cursor of this call (edited, cut, or of other arguments, another tool \
                   or an earlier process); leave cursor out for the first page";
        position().ok_or_else(|| ToolError::new(Code::InvalidCursor, why))
    }
}

/// Digits of base 32, low ones first: of a number four bits each, and the fifth on all but its last
/// digit; of the authentication tag five bits each.
fn encode(numbers: &[u64], mac: u64) -> String {
    let mut digits = Vec::new();
    for number in numbers {
        let last = number.max(&1).ilog2() / 4;
        digits.extend((0..=last).map(|at| number >> (4 * at) & 15 | u64::from(at < last) << 4));
    }
    digits.extend((0..MAC_CHARS).map(|at| mac >> (5 * at) & 31));
    digits.into_iter().filter_map(|digit| char::from_digit(digit as u32, 32)).collect()
}

fn decode(text: &str) -> Option<(Vec<u64>, u64)> {
    let digit = |digit: char| digit.to_digit(32).map(u64::from);
    let digits: Vec<u64> = text.chars().take(CURSOR_CHARS_MAX).map(digit).collect::<Option<_>>()?;
    let (numbers, mac) = digits.split_at_checked(digits.len().checked_sub(MAC_CHARS)?)?;
    let joined = |number: &[u64]| number.iter().rev().fold(0, |all, digit| all << 4 | digit & 15);
    let numbers: Vec<_> = numbers.split_inclusive(|digit| *digit < 16).map(joined).collect();
    let mac = mac.iter().rev().fold(0, |mac, digit| mac << 5 | digit);
    // What is spelled otherwise than we would is refused.
    (encode(&numbers, mac) == text).then_some((numbers, mac))
}
