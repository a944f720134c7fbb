//! Calls that no sane client makes: each gets exactly one answer, within its budget, without a
//! host path and without a fault of ours.

use serde_json::{Map, Value, json};

use crate::support::{Random, Reply, Server, Tree};

/// Random calls and mutated lines of an ordinary run; `IT_CALLS` asks for another number.
const CALLS: usize = 6_000;
/// Calls under way at once.
const PIPELINE: usize = 25;

pub fn calls() -> usize {
    let given = std::env::var("IT_CALLS").ok();
    given.map_or(CALLS, |digits| digits.parse().expect("IT_CALLS is a number"))
}

/// A tree with something of every kind.
pub fn mixed() -> Tree {
    let tree = Tree::of(&[
        ("a.txt", "one\nneedle two\nthree"),
        ("src/lib.rs", "fn needle() {}\r\n// \u{e9}\u{1f600}\r\n"),
        ("src/deep/er/x.md", "needle\n"),
        ("two  spaces\n", "needle"),
        ("node_modules/n.js", "needle\n"),
        ("empty", ""),
        (".env", "needle=secret-9\n"),
    ]);
    tree.write("long", "needle \u{e9}".repeat(20_000)).write("binary", b"\x89PNG\r\n\x1a\n\0");
    tree.write("bad", b"one\nneedle \xff\nneedle\n").write("many", "needle\n".repeat(5_000));
    tree.fifo("fifo").socket("socket").sparse("sparse", 1 << 30);
    tree.link("a.txt", "link")
        .link("../outside", "out")
        .link("loop", "loop")
        .link("no", "dangling");
    tree.link("src", "dirlink").write("../outside", "secret-9\n");
    tree
}

/// Values of every JSON type, with its extremes, as they stand on the wire.
const RAW: [&str; 56] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "10",
    "11",
    "8",
    "9",
    "50",
    "1.0",
    "10.0",
    "1e1",
    "1.5",
    "1e-9",
    "1e300",
    "-1e300",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "1e19",
    "1e400",
    "\"\"",
    "\" \"",
    "\".\"",
    "\"..\"",
    "\"/\"",
    "\"a.txt\"",
    "\"src\"",
    "\"1\"",
    "\"true\"",
    "\"null\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\\\\"",
    "\"*\"",
    "\"{\"",
    "\"\\n\"",
    "\"lines\"",
    "\"file\"",
    "[]",
    "[[]]",
    "[\"a.txt\"]",
    "[1,null]",
    "{}",
    "{\"path\":\"a.txt\"}",
    "[{\"a\":[{}]}]",
];

/// The tools as published.
fn published(server: &mut Server) -> Vec<Value> {
    server.send(&json!({"jsonrpc": "2.0", "id": "tools", "method": "tools/list"}));
    server.receive()["result"]["tools"].as_array().unwrap().clone()
}

/// Sound arguments: a value for each one that must be there.
fn required(tool: &Value) -> Map<String, Value> {
    let names = tool["inputSchema"]["required"].as_array().into_iter().flatten();
    let value = |name: &str| match name {
        "paths" => json!(["a.txt", "src/lib.rs"]),
        "path" => json!("a.txt"),
        "query" | "pattern" => json!("e"),
        _ => json!(1),
    };
    names.map(|name| name.as_str().unwrap()).map(|name| (name.to_owned(), value(name))).collect()
}

#[test]
fn every_argument_of_every_type_gets_one_answer() {
    let tree = mixed();
    let mut server = Server::new(&tree, &[]);
    server.forbid("secret-9");
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let wide = format!("\"{}\"", "x".repeat(100_000));
    let paths = format!("[{}]", vec!["\"a.txt\""; 50].join(","));
    let many = format!("[{}]", vec!["\"a.txt\""; 51].join(","));
    for tool in published(&mut server) {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        for (parameter, property) in properties {
            let more = [deep.as_str(), &wide, &paths, &many];
            for raw in RAW.into_iter().chain(more) {
                let mut arguments = required(&tool);
                arguments.remove(parameter);
                let others = Value::Object(arguments).to_string();
                let others = others[1..others.len() - 1].to_owned();
                let comma = if others.is_empty() { "" } else { "," };
                let arguments = format!("{{{others}{comma}\"{parameter}\":{raw}}}");
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\",\"arguments\":{arguments}}}}}\n"
                );
                server.send_raw(line.into_bytes());
                let value = server.receive();
                let short: String = raw.chars().take(60).collect();
                if value["result"].is_null() {
                    // A number that no double can hold is no JSON for most parsers.
                    assert_eq!((value["error"]["code"].as_i64(), raw), (Some(-32_700), "1e400"));
                    continue;
                }
                let reply = Reply::new(value);
                assert_ne!(reply.code(), "internal-error", "{name}.{parameter} = {short}");
                let large = raw.len() > 19 && raw.bytes().all(|byte| byte.is_ascii_digit());
                if large && property["type"] == "integer" && property["maximum"].is_null() {
                    assert_eq!(reply.code(), "", "{name}.{parameter} = {short}: {reply:?}");
                }
            }
        }
    }
    server.silent();
    server.close_quietly();
}

/// What a random argument may be: mostly what its schema says.
fn random_value(random: &mut Random, name: &str, property: &Value, cursors: &[String]) -> Value {
    const PATHS: [&str; 26] = [
        "a.txt",
        ".",
        "",
        "src",
        "src/lib.rs",
        "src/deep",
        "two  spaces\n",
        "node_modules",
        "empty",
        ".env",
        "long",
        "binary",
        "bad",
        "many",
        "fifo",
        "socket",
        "sparse",
        "link",
        "out",
        "loop",
        "dangling",
        "dirlink/lib.rs",
        "no/such",
        "../x",
        "/etc/passwd",
        "A.TXT",
    ];
    const TEXTS: [&str; 18] = [
        "needle",
        "e",
        "*",
        "*.txt",
        "src/**",
        "{a,b}*",
        "n?e*",
        "NEEDLE",
        "\u{c9}",
        "\u{1f600}",
        " ",
        "x|y",
        "**",
        "{",
        "a{b,{c,d}}e",
        "\n",
        "\\",
        "fn needle() {}",
    ];
    if random.below(40) == 0 {
        return serde_json::from_str(RAW[random.below(RAW.len())]).unwrap_or(Value::Null);
    }
    let choices = property["enum"].as_array();
    match (property["type"].as_str().unwrap(), name) {
        ("boolean", _) => json!(random.below(2) == 0),
        ("array", _) => (0..random.below(52)).map(|_| PATHS[random.below(PATHS.len())]).collect(),
        ("integer", _) => match random.below(8) {
            0 => json!(u64::MAX),
            1 => json!(random.below(1 << 40)),
            2 => json!(random.below(100) as f64),
            3 => property["maximum"].clone(),
            _ => json!(1 + random.below(20)),
        },
        ("string", "cursor") if !cursors.is_empty() => {
            let mut cursor = cursors[random.below(cursors.len())].clone();
            if random.below(10) == 0 {
                cursor.remove(random.below(cursor.len()));
            }
            json!(cursor)
        }
        ("string", "path") => json!(PATHS[random.below(PATHS.len())]),
        ("string", _) => match choices {
            Some(choices) => choices[random.below(choices.len())].clone(),
            None => json!(TEXTS[random.below(TEXTS.len())]),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn random_calls_from_the_schemas_get_one_lawful_answer() {
    let mut random = Random::new();
    let tree = mixed();
    let servers = [&["--time-budget=100"][..], &["--max-result-chars=1000"]];
    for options in servers {
        let mut server = Server::new(&tree, options);
        server.forbid("secret-9");
        let tools = published(&mut server);
        let (mut cursors, mut given): (Vec<String>, Vec<(String, Value)>) = (vec![], vec![]);
        let (mut answered, mut sent) = (0, Vec::new());
        for id in 1..=calls() / servers.len() {
            // Half of the cursors go to the call that they were made for.
            let (name, arguments) = if !given.is_empty() && random.below(6) == 0 {
                given[random.below(given.len())].clone()
            } else {
                let tool = &tools[random.below(tools.len())];
                let mut arguments = required(tool);
                for (name, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
                    let must = arguments.contains_key(name);
                    if random.below(if must { 20 } else { 3 }) == 0 {
                        arguments.remove(name);
                    } else if must || random.below(3) == 0 {
                        let value = random_value(&mut random, name, property, &cursors);
                        arguments.insert(name.clone(), value);
                    }
                }
                if random.below(200) == 0 {
                    arguments.insert("no\nsuch".into(), json!(1));
                }
                (tool["name"].as_str().unwrap().to_owned(), Value::Object(arguments))
            };
            let params = json!({"name": name, "arguments": arguments});
            server.send(
                &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
            );
            sent.push((name, arguments));
            if id % PIPELINE != 0 {
                continue;
            }
            for (name, mut next) in sent.drain(..) {
                answered += 1;
                let value = server.receive();
                assert_eq!(value["id"], answered, "one answer each, in order: {value}");
                let reply = Reply::new(value);
                assert_ne!(reply.code(), "internal-error", "{reply:?}");
                assert_ne!(reply.code(), "io-error", "{reply:?}");
                if let Some(cursor) = reply.cursor() {
                    cursors.push(cursor.to_owned());
                    next["cursor"] = json!(cursor);
                    given.push((name, next));
                }
            }
            cursors.drain(..cursors.len().saturating_sub(50));
            given.drain(..given.len().saturating_sub(50));
        }
        assert!(!given.is_empty(), "no call was ever continued");
        server.close();
    }
}
