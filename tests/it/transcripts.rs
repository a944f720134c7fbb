//! Plays `fixtures/*.jsonl`, the protocol's documentation: one JSON object a line, one verb each.
//!
//! - `serve`: starts a server in an empty directory: `tree` (see [`put`]), `args` (`$TREE` is the
//!   directory; without it the directory itself is served), `states`: the block that follows is
//!   played once in each. `F` is a fresh process, `A` to `D` the legacy versions, oldest first.
//! - `send`: a message; `{"name", "arguments"}` alone is a `tools/call`; a string is a raw line,
//!   and in an array of pieces `{"hex"}` and `{"repeat": [text, times]}` make what JSON cannot.
//! - `want`: what the next line must be, as a partial match (see [`matches`]); `null` is silence,
//!   proven by a ping. Beside the members of the message it may name `text`, `code` (of an error)
//!   and `ours`, our half of `_meta`.
//! - `put`, `drop`, `link` change the tree; `close` ends the input; `"note"` is for the reader.
//!
//! Every block ends with exit code 0, an empty output and one line on stderr.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Reply, Server, Tree, command};

const VERSIONS: [(char, &str); 4] =
    [('A', "2024-11-05"), ('B', "2025-03-26"), ('C', "2025-06-18"), ('D', "2025-11-25")];

/// The transcripts: name and steps. `session.jsonl` is a plain recording, without verbs.
pub fn all() -> Vec<(String, Vec<Value>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for entry in fs::read_dir(fixtures).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".jsonl") && name != "session.jsonl" {
            let text = fs::read_to_string(entry.path()).unwrap();
            let parse = |(number, line)| {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}:{}: {e}", number + 1))
            };
            found.push((name.clone(), text.lines().enumerate().map(parse).collect()));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!found.is_empty());
    found
}

#[test]
fn every_transcript_holds() {
    let failed: Vec<String> = all()
        .into_iter()
        .filter_map(|(name, steps)| {
            std::panic::catch_unwind(|| play(&name, &steps)).err().map(|_| name)
        })
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Plays each block of a transcript in each of its states.
fn play(name: &str, steps: &[Value]) {
    let mut start = 0;
    while start < steps.len() {
        let serve = &steps[start]["serve"];
        assert!(serve.is_object(), "{name}:{}: a block begins with serve", start + 1);
        let next = steps[start + 1..].iter().position(|step| step.get("serve").is_some());
        let end = next.map_or(steps.len(), |offset| start + 1 + offset);
        for state in serve["states"].as_str().unwrap_or("D").chars() {
            play_block(name, start, serve, state, &steps[start + 1..end]);
        }
        start = end;
    }
}

fn play_block(name: &str, first: usize, serve: &Value, state: char, steps: &[Value]) {
    let tree = Tree::new();
    put(&tree, &serve["tree"]);
    let root = tree.root().into_os_string().into_string().unwrap();
    let strings = serve["args"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let mut arguments: Vec<String> =
        strings.map(|text| text.as_str().unwrap().replace("$TREE", &root)).collect();
    if !arguments.iter().any(|argument| argument.contains(&root)) {
        arguments.push(root.clone());
    }
    let mut server = Server::fresh_over(&tree, &mut command(), &arguments);
    if let Some((_, version)) = VERSIONS.iter().find(|(letter, _)| *letter == state) {
        server.initialize(version);
    }
    let mut bound = HashMap::from([("TREE".to_owned(), json!(root))]);
    for (offset, step) in steps.iter().enumerate() {
        let place = format!("{name}:{} in state {state}", first + offset + 2);
        take(&place, &tree, &mut server, &mut bound, step);
    }
    let closed = server.close();
    let left: Vec<_> = closed.lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
    assert!(left.is_empty(), "{name}: unexpected: {left:?}");
    assert_eq!(closed.status.code(), Some(0), "{name}: {}", closed.stderr);
    assert_eq!(closed.stderr.lines().count(), 1, "{name}: {}", closed.stderr);
}

/// Takes one step.
fn take(
    place: &str,
    tree: &Tree,
    server: &mut Server,
    bound: &mut HashMap<String, Value>,
    step: &Value,
) {
    let members = step.as_object().unwrap_or_else(|| panic!("{place}: no object"));
    assert_eq!(members.len(), 1, "{place}: one verb is expected");
    let (verb, value) = members.iter().next().unwrap();
    match verb.as_str() {
        "note" => (),
        "put" => put(tree, value),
        "drop" => {
            tree.remove(value.as_str().unwrap());
        }
        "link" => {
            for (path, target) in value.as_object().unwrap() {
                tree.link(target.as_str().unwrap(), path);
            }
        }
        "close" => server.end_input(),
        "send" => server.send_raw(line(&filled(value, bound))),
        "want" if value.is_null() => server.silent(),
        "want" => {
            let line = server.next_line().unwrap_or_else(|| panic!("{place}: no answer"));
            let seen = std::panic::AssertUnwindSafe(|| server.check_line(&line));
            let seen = std::panic::catch_unwind(seen).unwrap_or_else(|_| panic!("{place}"));
            let seen = widened(seen);
            if let Err(difference) = matches(value, Some(&seen), bound) {
                panic!("{place}: {difference}\nwanted {value}\nbut got {seen:.3000}");
            }
        }
        other => panic!("{place}: unknown verb {other}"),
    }
}

/// Makes entries: a string is a file's content, `null` a directory, `{"link"}` a symbolic link,
/// `{"hex"}` and `{"repeat": [text, times]}` content, `{"sparse": bytes}`, `{"fifo"}`.
fn put(tree: &Tree, entries: &Value) {
    for (path, entry) in entries.as_object().into_iter().flatten() {
        match entry {
            Value::Null => tree.dir(path),
            Value::Object(kind) if kind.contains_key("link") => {
                let root = tree.root().into_os_string().into_string().unwrap();
                tree.link(kind["link"].as_str().unwrap().replace("$TREE", &root), path)
            }
            Value::Object(kind) if kind.contains_key("fifo") => tree.fifo(path),
            Value::Object(kind) if kind.contains_key("sparse") => {
                tree.sparse(path, kind["sparse"].as_u64().unwrap())
            }
            other => tree.write(path, bytes(other)),
        };
    }
}

/// The bytes of a piece, or of an array of pieces.
fn bytes(piece: &Value) -> Vec<u8> {
    if let Some(hex) = piece["hex"].as_str() {
        let digits = hex.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        return digits.map(byte).collect();
    }
    match piece {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Array(pieces) => pieces.iter().flat_map(bytes).collect(),
        _ => {
            let times = usize::try_from(piece["repeat"][1].as_u64().unwrap()).unwrap();
            piece["repeat"][0].as_str().unwrap().repeat(times).into_bytes()
        }
    }
}

/// The line that a `send` stands for.
fn line(message: &Value) -> Vec<u8> {
    let mut line = match message {
        Value::Object(call) if call.contains_key("name") => {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
                .to_string()
                .into_bytes()
        }
        Value::Object(_) => message.to_string().into_bytes(),
        raw => bytes(raw),
    };
    line.push(b'\n');
    line
}

/// The message with what was bound in the place of each `$name`.
fn filled(message: &Value, bound: &HashMap<String, Value>) -> Value {
    match message {
        Value::Array(items) => items.iter().map(|item| filled(item, bound)).collect(),
        Value::Object(members) => {
            let fill = |(name, member): (&String, _)| (name.clone(), filled(member, bound));
            Value::Object(members.iter().map(fill).collect())
        }
        Value::String(text) => {
            let whole = text.strip_prefix('$').and_then(|name| bound.get(name));
            let tree = || text.replace("$TREE", bound["TREE"].as_str().unwrap());
            whole.cloned().unwrap_or_else(|| Value::String(tree()))
        }
        other => other.clone(),
    }
}

/// The message with shorthands for what is read most: `text`, `code`, `ours`.
fn widened(mut seen: Value) -> Value {
    if seen["result"]["content"].is_array() {
        let reply = Reply::new(seen.clone());
        let (code, text) = (reply.code(), &reply.text);
        seen["text"] = json!(text);
        seen["code"] = json!(code);
        seen["ours"] = seen["result"]["_meta"]["readonly-mcp/result"].clone();
    }
    seen
}

/// Whether `seen` is what `want` asks for. Objects need only the listed members; arrays have the
/// same length; `{"$each": want}` holds for every item, `{"$exact": value}` allows nothing else;
/// a member that is `"$absent"` is not there. In a string `$name` binds a run without blank and
/// semicolon (alone: any value) and `$...` stands for anything.
fn matches(
    want: &Value,
    seen: Option<&Value>,
    bound: &mut HashMap<String, Value>,
) -> Result<(), String> {
    if want == "$absent" {
        return seen.map_or(Ok(()), |seen| Err(format!("{seen} should be absent")));
    }
    let seen = seen.ok_or_else(|| format!("{want} is missing"))?;
    match (want, seen) {
        (Value::Object(members), _) if members.contains_key("$exact") => {
            let same = members["$exact"] == *seen;
            if same { Ok(()) } else { Err(format!("{seen} is not exactly {want}")) }
        }
        (Value::Object(members), Value::Array(items)) if members.contains_key("$each") => {
            items.iter().try_for_each(|item| matches(&members["$each"], Some(item), bound))
        }
        (Value::Object(members), Value::Object(_)) => {
            members.iter().try_for_each(|(name, member)| matches(member, seen.get(name), bound))
        }
        (Value::Array(wants), Value::Array(items)) if wants.len() == items.len() => {
            let mut pairs = wants.iter().zip(items);
            pairs.try_for_each(|(want, item)| matches(want, Some(item), bound))
        }
        (Value::String(pattern), _) if pattern.starts_with('$') && is_name(&pattern[1..]) => {
            bound.insert(pattern[1..].to_owned(), seen.clone());
            Ok(())
        }
        (Value::String(pattern), Value::String(text)) => {
            let found = text_matches(pattern, text).ok_or_else(|| format!("not {pattern:?}"))?;
            bound.extend(found);
            Ok(())
        }
        _ if want == seen => Ok(()),
        _ => Err(format!("{seen} is not {want}")),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// What a pattern binds in a text, if it matches.
fn text_matches(pattern: &str, text: &str) -> Option<Vec<(String, Value)>> {
    let Some((before, after)) = pattern.split_once('$') else {
        return (pattern == text).then(Vec::new);
    };
    let text = text.strip_prefix(before)?;
    if let Some(after) = after.strip_prefix("...") {
        let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        return ends.find_map(|end| text_matches(after, &text[end..]));
    }
    let name_end = after.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(after.len());
    let run = text.find([' ', ';', '\n']).unwrap_or(text.len());
    let mut ends = (1..=run).rev().filter(|end| text.is_char_boundary(*end));
    ends.find_map(|end| {
        let mut found = text_matches(&after[name_end..], &text[end..])?;
        found.push((after[..name_end].to_owned(), json!(&text[..end])));
        Some(found)
    })
}

#[test]
fn a_want_can_fail() {
    let mut bound = HashMap::new();
    let mut fits = |want: Value, seen: Value| matches(&want, Some(&seen), &mut bound).is_ok();
    let seen = json!({"id": 1, "text": "more; cursor: abc\nrow", "list": [{"a": 1}, {"a": 1}]});
    for (want, expected) in [
        (json!({"id": 1}), true),
        (json!({"id": 2}), false),
        (json!({"id": "1"}), false),
        (json!({"id": "$absent"}), false),
        (json!({"no": "$absent", "id": "$id"}), true),
        (json!({"no": "$any"}), false),
        (json!({"text": "more; cursor: $c\nrow"}), true),
        (json!({"text": "more; cursor: $c\nro"}), false),
        (json!({"text": "more; cursor: $c"}), false),
        (json!({"text": "$...row"}), true),
        (json!({"text": "$...: $..."}), true),
        (json!({"text": "$...rows$..."}), false),
        (json!({"list": {"$each": {"a": 1}}}), true),
        (json!({"list": {"$each": {"a": 2}}}), false),
        (json!({"list": [{}, {}]}), true),
        (json!({"list": [{}]}), false),
        (json!({"$exact": {"id": 1}}), false),
    ] {
        assert_eq!(fits(want.clone(), seen.clone()), expected, "{want}");
    }
    assert_eq!(bound["c"], "abc");
}
