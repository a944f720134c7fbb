//! Lines that are nearly requests: what the transcripts send, changed at random, gets one answer or
//! none, and what is still a request gets its own.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hostile_calls::{calls, mixed};
use crate::support::{Random, Server, command, initialize};
use crate::transcripts;

/// Every line that a client sends in the transcripts.
fn recorded() -> Vec<Vec<u8>> {
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/session.jsonl");
    let session = fs::read_to_string(session).unwrap();
    let mut lines: Vec<Vec<u8>> = session.lines().map(|line| line.as_bytes().to_vec()).collect();
    for (_, steps) in transcripts::all() {
        for step in steps {
            match &step["send"] {
                Value::String(line) => lines.push(line.clone().into_bytes()),
                Value::Object(call) if call.contains_key("arguments") && call.len() == 2 => {
                    let request =
                        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
                    lines.push(request.to_string().into_bytes());
                }
                message @ (Value::Object(_) | Value::Array(_)) => {
                    lines.push(message.to_string().into_bytes());
                }
                _ => (),
            }
        }
    }
    lines.retain(|line| !line.is_empty() && line.len() < 10_000);
    assert!(lines.len() > 100);
    lines
}

/// Changes a line as noise, a bad client and a splice of two clients do.
fn mutate(random: &mut Random, lines: &[Vec<u8>]) -> Vec<u8> {
    const TOKENS: [&[u8]; 20] = [
        b"\"",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"0",
        b"-",
        b"1e9",
        b"null",
        b"true",
        b"\\u0000",
        b"\\ud83d",
        b"\\\"",
        b"\xff",
        b"\xe2\x80\xa8",
        b"\0",
        b"\r",
        b"  ",
    ];
    let mut line = lines[random.below(lines.len())].clone();
    for _ in 0..=random.below(4) {
        if line.is_empty() {
            break;
        }
        let at = random.below(line.len());
        let end = (at + 1 + random.below(12)).min(line.len());
        let token = TOKENS[random.below(TOKENS.len())];
        let other = &lines[random.below(lines.len())];
        match random.below(7) {
            0 => drop(line.splice(at..at, token.iter().copied())),
            1 => drop(line.splice(at..end, token.iter().copied())),
            2 => drop(line.drain(at..end)),
            3 => line[at] ^= 1 << random.below(8),
            4 => line.truncate(at),
            5 => drop(line.splice(at..at, line[at..end].to_vec())),
            _ => drop(line.splice(at..end, other[random.below(other.len())..].iter().copied())),
        }
    }
    line.retain(|byte| *byte != b'\n');
    line
}

#[test]
fn mutated_lines_of_the_transcripts_get_one_answer_or_none() {
    let mut random = Random::new();
    let (tree, lines) = (mixed(), recorded());
    let versions = [None, Some("2025-03-26"), Some("2025-11-25")];
    for version in versions {
        let mut server = Server::fresh_over(&tree, &mut command(), &[tree.root()]);
        server.forbid("secret-9");
        if let Some(version) = version {
            server.send(&initialize(version));
            server.receive();
        }
        for number in 0..calls() / versions.len() {
            let line = mutate(&mut random, &lines);
            let place = String::from_utf8_lossy(&line).into_owned();
            let sentinel = format!("sentinel {number}");
            let ping = json!({"jsonrpc": "2.0", "id": sentinel, "method": "ping"});
            server.send_raw([&line[..], b"\n", ping.to_string().as_bytes(), b"\n"].concat());
            let first = server.receive();
            let answers = usize::from(first["id"] != json!(sentinel));
            if answers == 1 {
                assert_eq!(server.receive()["id"], json!(sentinel), "{place}\n{first}");
            }
            assert_ne!(first["error"]["code"], -32_603, "{place}\n{first}");
            let text = first["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(!text.starts_with("internal-error"), "{place}\n{first}");
            // What is a request by any reading is answered under its id.
            if let Ok(Value::Object(request)) = serde_json::from_slice(&line) {
                let method = request.get("method").is_some_and(Value::is_string);
                let sound = method && request.get("jsonrpc") == Some(&json!("2.0"));
                let id =
                    request.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64());
                if let (true, Some(id)) = (sound, id) {
                    let listen = first["method"] == "notifications/subscriptions/acknowledged";
                    assert!(first["id"] == *id || listen, "{place}\n{first}");
                } else if sound && !request.contains_key("id") {
                    assert_eq!(answers, 0, "{place}\n{first}");
                }
            }
        }
        server.close();
    }
}
