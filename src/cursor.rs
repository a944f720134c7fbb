//! Cursors: sealed positions that fail rather than tear. One holds numbers, a tag of the state that
//! was passed, and an HMAC over both, the tool and its arguments. It never holds a path and never
//! grants anything: policy and confinement are checked again on every page.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Code, Result, ToolError};
use crate::limits::{CURSOR_CHARS_MAX, CURSOR_NUMBER_BYTES_MAX};

/// Bytes of the state tag: 40 bits.
const STATE_BYTES: usize = 5;
/// Bytes of the authentication tag: 64 bits.
const MAC_BYTES: usize = 8;
/// RFC 4648 base 32 in lower case: 5 bits a character, one spelling per value.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The key of this process. It is made at start, never leaves, and dies with the process.
pub(crate) struct Seal(Hmac<Sha256>);

/// What was given out so far, folded into a tag as it is passed.
#[derive(Clone)]
pub(crate) struct State(Hmac<Sha256>);

impl State {
    /// Adds one item: its path and whatever else must not change.
    pub(crate) fn pass(&mut self, path: &str, rest: &[u8]) {
        self.0.update(path.as_bytes());
        // No path holds a NUL, so no two sequences of items are the same bytes.
        self.0.update(&[0]);
        self.0.update(rest);
    }
}

/// The tool and its effective arguments that a cursor belongs to.
pub(crate) struct Binding(Hmac<Sha256>);

impl Binding {
    /// Adds one argument; its length keeps neighbours apart.
    pub(crate) fn with(mut self, argument: &str) -> Self {
        self.0.update(&(argument.len() as u64).to_le_bytes());
        self.0.update(argument.as_bytes());
        self
    }
}

/// A position and the tag of the state before it, as a cursor holds them.
pub(crate) struct Position<const N: usize> {
    pub(crate) numbers: [u64; N],
    state: [u8; STATE_BYTES],
}

impl<const N: usize> Position<N> {
    /// `stale-cursor` unless what is passed again now is what was passed then.
    pub(crate) fn expect(&self, state: &State, advice: &str) -> Result<()> {
        if tag(&state.0) == self.state { Ok(()) } else { Err(stale(advice)) }
    }
}

/// What was passed is no more what it was.
pub(crate) fn stale(advice: &str) -> ToolError {
    let sentence = format!("what was already given out has changed; {advice}");
    ToolError::new(Code::StaleCursor, sentence)
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

    /// An empty state.
    pub(crate) fn state(&self) -> State {
        State(self.0.clone().chain_update(b"state"))
    }

    /// The binding of a tool, its arguments still to be added in a fixed order.
    pub(crate) fn binding(&self, tool: &str) -> Binding {
        Binding(self.0.clone().chain_update(b"cursor")).with(tool)
    }

    /// The text of a cursor; `limit-exceeded` if its numbers are too large for one.
    pub(crate) fn seal(binding: &Binding, numbers: &[u64], state: &State) -> Result<String> {
        // Zeros at the end go without saying.
        let length = numbers.iter().rposition(|number| *number != 0).map_or(0, |last| last + 1);
        let mut bytes: Vec<u8> = numbers[..length].iter().copied().flat_map(septets).collect();
        if bytes.len() > CURSOR_NUMBER_BYTES_MAX {
            let sentence = "the position is too far for a cursor; narrow path or glob";
            return Err(ToolError::new(Code::LimitExceeded, sentence));
        }
        bytes.extend(tag::<STATE_BYTES>(&state.0));
        bytes.extend(tag::<MAC_BYTES>(&binding.0.clone().chain_update(&bytes)));
        Ok(encode(&bytes))
    }

    /// The position in a cursor that this process sealed under the same binding.
    pub(crate) fn open<const N: usize>(binding: &Binding, text: &str) -> Result<Position<N>> {
        parse(binding, text).ok_or_else(|| {
            let sentence = "this is no cursor of this call (it was edited, cut, or belongs to other \
                            arguments, another tool or an earlier process); leave cursor out for \
                            the first page";
            ToolError::new(Code::InvalidCursor, sentence)
        })
    }
}

fn parse<const N: usize>(binding: &Binding, text: &str) -> Option<Position<N>> {
    let bytes = decode(text)?;
    let (signed, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
    binding.0.clone().chain_update(signed).verify_truncated_left(mac).ok()?;
    let (mut rest, state) = signed.split_at_checked(signed.len().checked_sub(STATE_BYTES)?)?;
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = if rest.is_empty() { 0 } else { take_number(&mut rest)? };
    }
    Some(Position { numbers, state: state.try_into().ok()? })
}

fn tag<const N: usize>(mac: &Hmac<Sha256>) -> [u8; N] {
    let whole = mac.clone().finalize().into_bytes();
    core::array::from_fn(|index| whole[index])
}

/// Seven bits a byte, low ones first, the high bit on all but the last.
fn septets(number: u64) -> impl Iterator<Item = u8> {
    let rest =
        core::iter::successors(Some(number), |rest| Some(rest >> 7).filter(|rest| *rest > 0));
    rest.map(|rest| (rest & 0x7f) as u8 | if rest > 0x7f { 0x80 } else { 0 })
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let end = bytes.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (number, rest) = bytes.split_at(end);
    *bytes = rest;
    Some(number.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

fn encode(bytes: &[u8]) -> String {
    let digit = |index: usize| {
        let at = |byte| u32::from(bytes.get(byte).copied().unwrap_or(0));
        let (byte, bit) = (index * 5 / 8, index * 5 % 8);
        let bits = (at(byte) << 8 | at(byte + 1)) >> (11 - bit) & 31;
        char::from(ALPHABET[bits as usize])
    };
    (0..(bytes.len() * 8).div_ceil(5)).map(digit).collect()
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut bytes) = (0_u64, Vec::new());
    for (index, character) in text.bytes().take(CURSOR_CHARS_MAX).enumerate() {
        bits = bits << 5 | ALPHABET.iter().position(|known| *known == character)? as u64;
        // A byte is complete, and `spare` bits of the next are there.
        let spare = (index + 1) * 5 % 8;
        if spare < 5 {
            bytes.push((bits >> spare) as u8);
        }
    }
    // The last character has bits to spare: spelled otherwise than we would, it is refused.
    (encode(&bytes) == text).then_some(bytes)
}
