//! JSON-RPC 2.0 over lines: reading a line, taking a message apart, writing a reply.
//!
//! Knows no method and nothing of MCP, holds no state beyond the start of the stream, and never
//! allocates more for a line than its cap.

use std::io::{BufRead, ErrorKind};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::escape::write_json;
use crate::limits::{ID_BYTES_MAX, LINE_BYTES_KEPT, VALUES_MAX};

// The codes of JSON-RPC. `INTERNAL_ERROR` is also for what this program will not hold.
pub(crate) const PARSE_ERROR: i32 = -32_700;
pub(crate) const INVALID_REQUEST: i32 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32_601;
pub(crate) const INVALID_PARAMS: i32 = -32_602;
pub(crate) const INTERNAL_ERROR: i32 = -32_603;

/// What [`LineReader::read_line`] found.
pub(crate) enum Line {
    /// The buffer holds a line, without its end.
    Text,
    /// A line over the cap went by; the buffer is empty.
    TooLong,
    /// Nothing more will come.
    End,
}

/// Splits a stream into lines of bounded length.
pub(crate) struct LineReader {
    pub(crate) bytes_max: usize,
    /// True before the first line, where a byte order mark is dropped.
    pub(crate) at_start: bool,
}

impl LineReader {
    /// Reads one line into `line`, without `\n` or `\r\n`. The last one needs no end; a read error
    /// is the end of the stream, since no later byte could be trusted to begin a line.
    pub(crate) fn read_line(&mut self, reader: &mut impl BufRead, line: &mut Vec<u8>) -> Line {
        line.clear();
        line.shrink_to(LINE_BYTES_KEPT);
        let (mut any, mut too_long, mut ended) = (false, false, false);
        while !ended {
            let chunk = match reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => &[],
            };
            let end = memchr::memchr(b'\n', chunk);
            let (part, _) = chunk.split_at(end.unwrap_or(chunk.len()));
            let read = part.len() + usize::from(end.is_some());
            ended = end.is_some() || chunk.is_empty();
            any |= read > 0;
            too_long |= self.bytes_max - line.len() < part.len();
            if too_long {
                line.clear();
            } else {
                // Doubles like `extend` would, but never past the cap.
                if line.capacity() - line.len() < part.len() {
                    let wanted = (line.len() + part.len()).max(2 * line.capacity());
                    line.reserve_exact(wanted.min(self.bytes_max) - line.len());
                }
                line.extend_from_slice(part);
            }
            reader.consume(read);
        }
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.ends_with(b"\r") {
            line.pop();
        }
        match (any, too_long) {
            (false, _) => Line::End,
            (true, false) => Line::Text,
            (true, true) => Line::TooLong,
        }
    }
}

/// Parses a line that is not blank. An array is a batch; what its elements are is not yet known.
pub(crate) fn parse(line: &[u8]) -> Result<Value, RpcError> {
    // A parsed value takes many times the room of its text: `0,` becomes a hundred bytes.
    let marks = memchr::memchr3_iter(b',', b'[', b'{', line).take(VALUES_MAX + 1).count();
    if marks > VALUES_MAX {
        let text = format!("a request line holds at most {VALUES_MAX} values");
        return Err(RpcError::new(PARSE_ERROR, text));
    }
    let retry = |error| rescued(line).map_or(Err(error), |line| serde_json::from_slice(&line));
    serde_json::from_slice(line).or_else(retry).map_err(|error| {
        RpcError::new(PARSE_ERROR, format!("the line is not JSON, at byte {}", error.column()))
    })
}

/// The line with every unpaired surrogate escape as `\ufffd`, if there is one: JavaScript's
/// `JSON.stringify` writes them, and a client should not wait in vain for its answer.
fn rescued(line: &[u8]) -> Option<Vec<u8>> {
    /// The code unit of the `\uXXXX` that the bytes begin with.
    fn unit(bytes: &[u8]) -> Option<u32> {
        let digits = bytes.strip_prefix(b"\\u")?.first_chunk::<4>()?;
        digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
    }
    let mut line = line.to_vec();
    let mut changed = false;
    let mut at = 0;
    while let Some(rest) = line.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let next = rest.get(6..).and_then(unit);
        at += match (unit(rest), next) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                rest.iter_mut().zip(b"\\ufffd").for_each(|(byte, new)| *byte = *new);
                changed = true;
                6
            }
            _ if rest.starts_with(b"\\") => 2,
            _ => memchr::memchr(b'\\', rest).unwrap_or(rest.len()),
        };
    }
    changed.then_some(line)
}

/// A request id: a string that a reply line has room for, or an integer of 64 bits, since others
/// would not come back as they came.
#[derive(Clone, PartialEq)]
pub(crate) struct RequestId(Value);

impl RequestId {
    /// The id, if the value can be one.
    pub(crate) fn new(value: &Value) -> Option<Self> {
        let short = value.as_str().is_some_and(|text| text.len() <= ID_BYTES_MAX);
        (short || value.is_i64() || value.is_u64()).then(|| Self(value.clone()))
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A message whose envelope is sound.
pub(crate) enum Message {
    Request(Request),
    /// A method and its parameters; never answered.
    Notification(String, Map<String, Value>),
    /// Nothing was asked, so nothing is done: a reply here could start an endless exchange.
    Response,
}

/// What is to be answered.
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    /// Empty if there were none.
    pub(crate) params: Map<String, Value>,
}

/// Checks an envelope: first whether it asks for anything, then its id, so that later faults carry it.
pub(crate) fn message(value: Value) -> Result<Message, RpcError> {
    let fault = |text: &str| RpcError::new(INVALID_REQUEST, text);
    let Value::Object(mut members) = value else { return Err(fault("a message is an object")) };
    let id = members.get("id").map(RequestId::new);
    if !members.contains_key("method") {
        return match members.contains_key("result") || members.contains_key("error") {
            true => Ok(Message::Response),
            false => Err(RpcError { id: id.flatten(), ..fault("method is missing") }),
        };
    }
    if id == Some(None) {
        return Err(fault("id must be a string of at most 1 MiB or an integer of 64 bits"));
    }
    let id = id.flatten();
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(RpcError { id, ..fault("jsonrpc must be \"2.0\"") });
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return Err(RpcError { id, ..fault("method must be a string") });
    };
    let params = match members.remove("params") {
        Some(Value::Object(params)) => Ok(params),
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Array(_)) => Err(INVALID_PARAMS),
        Some(_) => Err(INVALID_REQUEST),
    };
    match (id, params) {
        (None, params) => Ok(Message::Notification(method, params.unwrap_or_default())),
        (Some(id), Ok(params)) => Ok(Message::Request(Request { id, method, params })),
        (id, Err(code)) => Err(RpcError { id, ..RpcError::new(code, "params must be an object") }),
    }
}

/// An error reply.
pub(crate) struct RpcError {
    pub(crate) code: i32,
    /// One short sentence.
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
    /// Left out of the reply when unknown: no MCP schema allows `null`.
    pub(crate) id: Option<RequestId>,
}

impl RpcError {
    /// An error without data, and without an id as yet.
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, id: None }
    }
}

impl From<RpcError> for Vec<u8> {
    fn from(error: RpcError) -> Self {
        let mut member = json!({"code": error.code, "message": error.message});
        if let Some(data) = error.data {
            member["data"] = data;
        }
        reply(error.id.as_ref(), "error", &member)
    }
}

/// A reply with one member (`result` or `error`) beside its id, without a newline.
pub(crate) fn reply(id: Option<&RequestId>, member: &str, value: &impl Serialize) -> Vec<u8> {
    let mut out = reply_start(id);
    write_member(&mut out, member, value);
    out.push(b'}');
    out
}

/// A reply before its last member.
pub(crate) fn reply_start(id: Option<&RequestId>) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\"".to_vec();
    if let Some(id) = id {
        write_member(&mut out, "id", id);
    }
    out
}

/// Appends a member to the object that `out` ends in; so members stand in the order of writing.
pub(crate) fn write_member(out: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    if !out.ends_with(b"{") {
        out.push(b',');
    }
    write_json(out, &name);
    out.push(b':');
    write_json(out, value);
}
