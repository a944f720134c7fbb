//! Executes `README.md`, so that nothing in it rots: calls and answers, options, rules, codes.
//!
//! A fenced `text` block that begins with `> tool {arguments}` goes on with the exact answer of a
//! server over `fixtures/tree`; a line `$ readonly-mcp WORDS` before it gives another command line,
//! and alone stands for a command and what it prints. Hashes are shortened to eight digits, times are
//! not compared, and a cursor stands for the one of today. With the variable `BLESS` set, answers
//! that differ are written anew.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;

use crate::support::{CODES, Reply, Server, command};

/// What the server is started with unless a block says otherwise.
const TREE: &str = "fixtures/tree";
/// Digits of a hash that are shown.
const HASH_DIGITS: usize = 8;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The text below a heading of the second level.
fn section<'a>(readme: &'a str, heading: &str) -> &'a str {
    let start = readme.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("{heading}"));
    let below = &readme[start + 4..];
    &below[..below.find("\n## ").unwrap_or(below.len())]
}

/// The fenced blocks: language, and text with its last newline.
fn blocks(readme: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = readme;
    while let Some((_, fence)) = rest.split_once("\n```") {
        let (language, body) = fence.split_once('\n').unwrap();
        let end = body.find("\n```").expect("the block ends") + 1;
        found.push((language, &body[..end]));
        rest = &body[end + 3..];
    }
    found
}

/// Servers over the command lines met so far, and the cursors of the page with those of today.
#[derive(Default)]
struct Player {
    servers: HashMap<String, Server>,
    cursors: HashMap<String, String>,
}

impl Player {
    /// A block as it should read today; `None` if it is no example.
    fn play(&mut self, block: &str) -> Option<String> {
        let (first, rest) = block.split_once('\n')?;
        let (prefix, words, call, old) = match first.strip_prefix("$ readonly-mcp ") {
            Some(words) => match rest.split_once('\n').filter(|(call, _)| call.starts_with("> ")) {
                Some((call, old)) => (format!("{first}\n{call}\n"), words, call, old),
                None => return Some(format!("{first}\n{}", run(words))),
            },
            None => (format!("{first}\n"), TREE, first, rest),
        };
        let (tool, arguments) = call.strip_prefix("> ")?.split_once(' ').expect("> tool {...}");
        let mut arguments: Value = serde_json::from_str(arguments).expect("arguments are JSON");
        if let Some(today) = arguments["cursor"].as_str().and_then(|old| self.cursors.get(old)) {
            arguments["cursor"] = Value::String(today.clone());
        }
        let start = || {
            let mut command = command();
            Server::spawn(command.current_dir(root()).args(split(words)))
        };
        let server = self.servers.entry(words.to_owned()).or_insert_with(start);
        let reply = server.call(tool, arguments);
        let mut text = shown(&reply);
        let header = old.lines().next().unwrap_or("");
        if let (Some(today), Some((_, old))) = (reply.cursor(), header.split_once("; cursor: ")) {
            text = text.replace(today, old);
            self.cursors.insert(old.to_owned(), today.to_owned());
        }
        Some(prefix + &text)
    }
}

/// The words of a command line, of which some stand in single quotes.
fn split(words: &str) -> impl Iterator<Item = &str> {
    words.split(' ').map(|word| word.trim_matches('\''))
}

/// What the program prints, to stdout and then to stderr, wherever this repository lies.
fn run(words: &str) -> String {
    let mut command = command();
    let output = command.current_dir(root()).args(split(words)).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    text.replace(&root().display().to_string(), "/path/to/readonly-mcp")
}

/// An answer as the page shows it.
fn shown(reply: &Reply) -> String {
    let mut text = reply.text.clone();
    let hash = reply.fact("sha256");
    if hash.len() > HASH_DIGITS && reply.code().is_empty() {
        text = text.replacen(hash, &format!("{}...", &hash[..HASH_DIGITS]), 1);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Without what differs from clone to clone: the mode (of which the umask decides), times, hashes of
/// payloads that hold times, and what `--check` thinks of the place.
fn timeless(text: &str) -> String {
    let is_time = |word: &str| word.len() == 20 && word.ends_with('Z') && word.contains('T');
    let times = text.split_whitespace().any(is_time);
    let text = text.split("\nsurprises: ").next().unwrap();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("created: ")) {
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in 0..words.len() {
            let key = at.checked_sub(1).map_or("", |before| words[before]);
            let differs = is_time(words[at]) || key == "mode:" || (key == "sha256:" && times);
            words[at] = if differs { "*" } else { words[at] };
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

#[test]
fn every_example_answers_as_shown() {
    let readme = readme();
    let (mut player, mut blessed, mut tools) = (Player::default(), readme.clone(), Vec::new());
    for (_, old) in blocks(&readme).into_iter().filter(|(language, _)| *language == "text") {
        let Some(new) = player.play(old) else { continue };
        tools.extend(old.lines().find_map(|line| line.strip_prefix("> ")?.split(' ').next()));
        if std::env::var_os("BLESS").is_none() {
            assert_eq!(timeless(old), timeless(&new), "BLESS=1 writes the new answers");
        } else if timeless(old) != timeless(&new) {
            blessed = blessed.replacen(&format!("```text\n{old}"), &format!("```text\n{new}"), 1);
        }
    }
    if blessed != readme {
        fs::write(root().join("README.md"), blessed).unwrap();
    }
    for tool in listed_tools() {
        let name = tool["name"].as_str().unwrap();
        assert!(tools.contains(&name), "{name} has no example");
    }
}

#[test]
fn every_argument_is_named() {
    let readme = readme();
    for tool in listed_tools() {
        let name = tool["name"].as_str().unwrap();
        let (_, about) = section(&readme, "Tools").split_once(&format!("\n**`{name}`** ")).unwrap();
        let about = about.split("\n\n").next().unwrap();
        let required = about.split(['.', ';']).next().unwrap();
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            let is_required = tool["inputSchema"]["required"].as_array();
            let is_required =
                is_required.is_some_and(|all| all.contains(&argument.as_str().into()));
            let quoted = format!("`{argument}`");
            assert!(about.contains(&quoted), "{name}: {argument}");
            assert!(!is_required || required.contains(&quoted), "{name}: {argument} is required");
            for value in schema["enum"].as_array().into_iter().flatten() {
                let value = value.as_str().unwrap();
                assert!(about.contains(&format!("`{value}`")), "{name}: {argument} {value}");
            }
        }
    }
}

/// The answers to the recorded session, by id, as the command in the page makes them.
fn session() -> HashMap<u64, Value> {
    let input = File::open(root().join("fixtures/session.jsonl")).unwrap();
    let output = command().current_dir(root()).arg(TREE).stdin(input).output().unwrap();
    assert!(output.status.success());
    let replies = String::from_utf8(output.stdout).unwrap();
    let replies = replies.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    replies.map(|reply| (reply["id"].as_u64().unwrap(), reply)).collect()
}

/// What the server says of its tools.
fn listed_tools() -> Vec<Value> {
    let replies = session();
    let lists = replies.values().find_map(|reply| reply["result"]["tools"].as_array());
    lists.unwrap().clone()
}

#[test]
fn the_recorded_session_gives_the_answer_shown() {
    let readme = readme();
    for line in [
        "cargo build --release --locked && target/release/readonly-mcp fixtures/tree < \
         fixtures/session.jsonl",
        "cargo test --locked",
    ] {
        assert!(blocks(&readme).contains(&("sh", &format!("{line}\n"))), "{line}");
    }
    let replies = session();
    let json = blocks(section(&readme, "Try it"));
    let (_, json) = json.iter().find(|(language, _)| *language == "json").unwrap();
    let shown: Value = serde_json::from_str(json).unwrap();
    assert_eq!(replies[&shown["id"].as_u64().unwrap()], shown);
    let requests = fs::read_to_string(root().join("fixtures/session.jsonl")).unwrap();
    let (requests, replies) = (requests.matches("\"id\"").count(), replies.len());
    assert!(readme.contains(&format!("session of {requests} requests")), "{requests} requests");
    assert_eq!(requests, replies);
}

#[test]
fn the_option_table_is_the_help() {
    let readme = readme();
    let help = run("--help");
    let rows = help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let rows: Vec<_> = rows.filter(|(name, _)| name.starts_with(['-', 'R'])).collect();
    assert!(rows.len() > 10, "{help}");
    let table = section(&readme, "Options").lines().filter_map(|line| line.strip_prefix("| `"));
    let table: Vec<Vec<&str>> = table.map(|row| row.split(" | ").collect()).collect();
    let names: Vec<_> = table.iter().map(|row| row[0].trim_end_matches('`')).collect();
    assert_eq!(names, rows.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (row, (name, meaning)) in table.iter().zip(rows) {
        let default = row[2].trim_end_matches('|').trim().replace(',', "");
        let in_help = meaning.trim_end_matches(')').rsplit_once(" (").map(|(_, default)| default);
        if let Some(in_help) = in_help {
            assert_eq!(default, in_help, "{name}");
        }
        let number = default.starts_with(|c: char| c.is_ascii_digit());
        assert!(!number || in_help.is_some(), "{name}: the help tells no default");
    }
}

#[test]
fn every_code_stands_in_the_table() {
    let readme = readme();
    let table = section(&readme, "Errors").lines().filter_map(|line| line.strip_prefix("| `"));
    let codes: Vec<_> = table.map(|row| row.split('`').next().unwrap()).collect();
    assert_eq!(codes, CODES);
}

#[test]
fn every_default_rule_is_listed() {
    let readme = readme();
    let source = fs::read_to_string(root().join("src/policy.rs")).unwrap();
    let listed = blocks(section(&readme, "What is withheld"));
    for (constant, place) in [("SECRETS", 0), ("NOISE", 1)] {
        let (_, value) = source.split_once(&format!("const {constant}: &str = \"")).unwrap();
        let value = value.split('"').next().unwrap().replace('\\', " ");
        let rules: Vec<_> = value.split_whitespace().collect();
        assert_eq!(listed[place].1.split_whitespace().collect::<Vec<_>>(), rules, "{constant}");
    }
}

#[test]
fn every_client_block_starts_this_server() {
    let readme = readme();
    let mut count = 0;
    for heading in ["Clients", "Windows, macOS, containers, other machines"] {
        for (language, text) in blocks(section(&readme, heading)) {
            assert!(text.contains("readonly-mcp"), "{text}");
            if language == "json" {
                let value: Value =
                    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
                let (_, servers) = value.as_object().unwrap().iter().next().unwrap();
                let command = &servers["files"]["command"];
                assert!(command.is_string() || command.is_array(), "{text}");
                count += 1;
            }
        }
    }
    assert!(count > 8, "{count} blocks");
}

#[test]
fn the_embedding_shown_is_the_example() {
    let readme = readme();
    let example = fs::read_to_string(root().join("tests/embed.rs")).unwrap();
    let rust = blocks(section(&readme, "Embedding"));
    let (_, rust) = rust.iter().find(|(language, _)| *language == "rust").unwrap();
    assert!(example.contains(rust), "{rust}");
}

#[test]
fn the_number_of_crates_is_that_of_the_lock() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let crates = lock.matches("[[package]]").count();
    assert!(readme().contains(&format!(", {crates} crates in the lock")), "{crates} crates");
}

#[test]
fn the_page_names_no_place_of_ours() {
    let readme = readme();
    for name in ["crates.io", "docs.rs", "npmjs", "pypi.org", "../", "/tmp/"] {
        assert!(!readme.replace("src/../", "").contains(name), "{name}");
    }
    let links = readme.split("](#").skip(1).map(|link| link.split(')').next().unwrap());
    for link in links {
        let slug = |heading: &str| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        };
        let headings = readme.lines().filter_map(|line| line.strip_prefix("## "));
        assert!(headings.map(slug).any(|heading| heading == link), "#{link}");
    }
}
