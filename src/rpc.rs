//! JSON-RPC 2.0: parsing a line, taking a message apart, writing a reply.
//!
//! Knows no method and nothing of MCP, and holds no state.

use serde_json::{Value, json};

use crate::escape::{object, to_json};
use crate::limits::{ID_BYTES_MAX, VALUES_MAX};

// The codes of JSON-RPC. `INTERNAL_ERROR` is also for what this program will not hold.
pub(crate) const PARSE_ERROR: i32 = -32_700;
pub(crate) const INVALID_REQUEST: i32 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32_601;
pub(crate) const INVALID_PARAMS: i32 = -32_602;
pub(crate) const INTERNAL_ERROR: i32 = -32_603;

/// Parses a line that is not blank. An array is a batch; what its elements are is not yet known.
pub(crate) fn parse(line: &[u8]) -> Result<Value, Value> {
    // A parsed value takes many times the room of its text: `0,` becomes a hundred bytes.
    if VALUES_MAX < memchr::memchr3_iter(b',', b'[', b'{', line).count() {
        let text = format!("a request line holds at most {VALUES_MAX} values");
        return Err(fault(PARSE_ERROR, text));
    }
    let parsed = serde_json::from_slice(line).or_else(|_| serde_json::from_slice(&rescued(line)));
    parsed.map_err(|error| {
        fault(PARSE_ERROR, format!("the line is not JSON, at byte {}", error.column()))
    })
}

/// The line with every unpaired surrogate escape as `\ufffd`: JavaScript's `JSON.stringify` writes
/// them, and a client should not wait in vain for its answer.
fn rescued(line: &[u8]) -> Vec<u8> {
    // The code unit of the `\uXXXX` that is there.
    let unit = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut rescued = line.to_vec();
    let mut at = 0;
    while let Some(plain) = line.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += plain;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                rescued[at..at + 6].copy_from_slice(b"\\ufffd");
                6
            }
            _ => 2,
        };
    }
    rescued
}

/// What a message asks for; a notification, which is never answered, if it has no id.
pub(crate) struct Request {
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    /// An object, or null if there were none; of a notification anything.
    pub(crate) params: Value,
}

/// Checks an envelope: first whether it asks for anything, then its id, so that later faults carry
/// it. A response asks for nothing: a reply to it could start an endless exchange. The error is the
/// reply that is due.
pub(crate) fn message(mut value: Value) -> Result<Option<Request>, Vec<u8>> {
    // Others would not fit in a reply line, or not come back as they came.
    let is_id = |id: &&Value| match id {
        Value::String(text) => text.len() <= ID_BYTES_MAX,
        id => id.is_i64() || id.is_u64(),
    };
    let id = value.get("id").filter(is_id).cloned();
    let has = |name| value.get(name).is_some();
    if !has("method") && (has("result") || has("error")) {
        return Ok(None);
    }
    let demands = [
        (value.is_object(), "a message is an object"),
        (has("method"), "method is missing"),
        (id.is_some() || !has("id"), "id must be a string up to 1 MiB or an integer of 64 bits"),
        (value["jsonrpc"] == "2.0", "jsonrpc must be \"2.0\""),
        (value["method"].is_string(), "method must be a string"),
    ];
    if let Some((_, text)) = demands.into_iter().find(|(holds, _)| !holds) {
        return Err(reply(&id, "error", &fault(INVALID_REQUEST, text)));
    }
    let params = value["params"].take();
    if id.is_some() && !params.is_object() && !params.is_null() {
        let code = if params.is_array() { INVALID_PARAMS } else { INVALID_REQUEST };
        return Err(reply(&id, "error", &fault(code, "params must be an object")));
    }
    let method = value["method"].as_str().unwrap_or_default().to_owned();
    Ok(Some(Request { id, method, params }))
}

/// The error of a reply, which says in one short sentence what is wrong.
pub(crate) fn fault(code: i32, message: impl Into<Value>) -> Value {
    json!({"code": code, "message": message.into()})
}

/// A reply with one member (`result` or `error`) beside its id, without a newline. An unknown id is
/// left out: no MCP schema allows `null`.
pub(crate) fn reply(id: &Option<Value>, member: &str, value: &Value) -> Vec<u8> {
    object([("jsonrpc", to_json("2.0")), ("id", to_json(id)), (member, to_json(value))])
}
