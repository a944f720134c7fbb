//! The process around the protocol: its command line, its streams, its end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Server, Tree, WHOLE, command, command_as_nobody, initialize, run, wait};

/// Runs to the end with this as input; the file's position tells whether it was read.
fn run_with(command: &mut Command, input: &mut File) -> Output {
    command.stdin(input.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.output().unwrap()
}

/// A file with one ping in it.
fn ping_file(tree: &Tree) -> File {
    tree.write("../input", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    File::open(tree.path("../input")).unwrap()
}

/// A configuration fault: exit code 2, one line on stderr, nothing on stdout, stdin not read.
#[track_caller]
fn fault(command: &mut Command, tree: &Tree) -> String {
    let mut input = ping_file(tree);
    let output = run_with(command, &mut input);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{command:?}: {stderr}");
    assert_eq!(output.stdout, b"", "{command:?}");
    assert_eq!(stderr.matches('\n').count(), 1, "{command:?}: {stderr}");
    assert!(stderr.ends_with('\n') && stderr.len() > 10, "{command:?}: {stderr}");
    assert_eq!(input.stream_position().unwrap(), 0, "{command:?}: stdin was read");
    stderr
}

#[test]
fn every_configuration_fault_is_one_line_and_exit_code_2() {
    let tree = Tree::of(&[("a/src/x", ""), ("b/src/x", ""), ("file", "")]);
    let (root, a, b) = (tree.text(""), tree.text("a/src"), tree.text("b/src"));
    let named = |alias: &str| format!("{alias}={a}");
    let nested = format!("{}a{}", "{".repeat(9), "}".repeat(9));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |arguments: &[&str]| {
        rows.push(arguments.iter().map(|argument| (*argument).to_owned()).collect());
    };
    row(&[]);
    row(&["--include", "*"]);
    row(&[&tree.text("missing")]);
    row(&[&tree.text("file")]);
    row(&[&format!("{}/x", tree.text("file"))]);
    row(&[""]);
    row(&["/proc"]);
    row(&["/proc/self"]);
    row(&["/sys"]);
    row(&[&root, "/proc"]);
    for alias in ["", ".x", "-x", "_x", "a b", "a/b", "\u{e9}", &"x".repeat(65)] {
        row(&["--root", &named(alias)]);
    }
    row(&["--root", &named("x"), "--root", &format!("x={b}")]);
    row(&[&a, &b]);
    row(&["--root", &format!("src={root}"), &b]);
    row(&["--root"]);
    for option in ["--include", "--exclude", "--allow"] {
        for glob in ["", "a{b", "a}b", &nested, &"x".repeat(1_025)] {
            row(&[option, glob, &root]);
        }
        row(&[&root, option]);
    }
    for number in ["999", "8388609", "-1", "1.5", "x", "", "99999999999999999999999"] {
        row(&["--max-result-chars", number, &root]);
    }
    for number in ["49", "50001", "0", "-1", "x"] {
        row(&["--time-budget", number, &root]);
    }
    for option in ["--max-file-bytes", "--max-request-bytes"] {
        for number in ["-1", "x", "", "1k"] {
            row(&[option, number, &root]);
        }
    }
    for option in ["--wat", "-x", "--no-default-excludes=yes", "--show-host-paths=1"] {
        row(&[option, &root]);
    }
    for arguments in rows {
        fault(command().args(&arguments), &tree);
    }
    // Read as something else, an exclusion would exclude nothing.
    let bytes = OsStr::from_bytes(b"a\xff");
    fault(command().arg("--exclude").arg(bytes).arg(&root), &tree);
    for (option, rest) in [("--check", "=a\nb"), ("--max-result-chars", "=1\n2"), ("--a\nb", "=1")]
    {
        fault(command().args([&format!("{option}{rest}"), &root]), &tree);
    }
    let misspelt = fault(command().args(["--exclud", "x", &root]), &tree);
    assert!(misspelt.contains("--exclude"), "{misspelt}");
    tree.dir("closed").mode("closed", 0o000);
    if let Some(mut nobody) = command_as_nobody() {
        fault(nobody.arg(tree.text("closed")), &tree);
    }
    tree.mode("closed", 0o755);
}

#[test]
fn limits_at_their_edges_are_accepted() {
    let tree = Tree::of(&[("a.txt", "x\n")]);
    for option in [
        "--max-result-chars=1000",
        WHOLE,
        "--time-budget=50",
        "--time-budget=50000",
        "--max-file-bytes=18446744073709551615",
    ] {
        let mut server = Server::new(&tree, &[option]);
        server.ok("list_roots", json!({}));
        server.close_quietly();
    }
    let alias = "x".repeat(64);
    let mut server = Server::over(&tree, &["--root", &format!("{alias}={}", tree.text(""))]);
    assert!(server.ok("list_roots", json!({})).payload().contains(&alias));
}

#[test]
fn help_and_version_go_to_stdout() {
    let tree = Tree::new();
    let version = env!("CARGO_PKG_VERSION");
    for (option, part) in [
        ("--help", "--max-result-chars"),
        ("-h", "--show-host-paths"),
        ("--version", version),
        ("-V", version),
    ] {
        let output = run_with(command().arg(option), &mut ping_file(&tree));
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains(part), "{option}");
        assert_eq!(output.stderr, b"", "{option}");
    }
    let help = run_with(command().arg("--help"), &mut ping_file(&tree)).stdout;
    let help = String::from_utf8(help).unwrap();
    for option in [
        "--root",
        "--include",
        "--exclude",
        "--allow",
        "--no-default-excludes",
        "--max-file-bytes",
        "--time-budget",
        "--max-request-bytes",
        "--version",
    ] {
        assert!(help.contains(option), "{option}");
    }
}

#[test]
fn end_of_input_is_exit_code_0() {
    let tree = Tree::new();
    let closed = Server::fresh(command().arg(tree.root())).close();
    assert_eq!((closed.status.code(), closed.lines.len()), (Some(0), 0), "{}", closed.stderr);
    let mut server = Server::fresh(command().arg(tree.root()));
    server.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_vec());
    server.end_input();
    assert_eq!(server.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    server.close_quietly();
    let mut server = Server::new(&tree, &["--max-request-bytes=5000"]);
    server.send_raw(vec![b'x'; 50_000]);
    server.end_input();
    assert_eq!(server.receive()["error"]["code"], -32600);
    server.close_quietly();
}

#[test]
fn stderr_is_one_line_that_says_what_is_served() {
    let tree = Tree::of(&[("a.txt", "x\n"), ("bad.txt", "\u{1}\u{0}")]);
    let mut server = Server::new(&tree, &["--exclude", "*.tmp"]);
    for path in ["a.txt", "bad.txt", "nope", "../x", ".env"] {
        server.call("read_file", json!({"path": path}));
    }
    server.send_raw(b"garbage\n".to_vec());
    server.receive();
    let closed = server.close();
    assert_eq!(closed.stderr.lines().count(), 1, "{}", closed.stderr);
    assert!(closed.stderr.contains(&tree.text("")), "{}", closed.stderr);
}

#[test]
fn a_thousand_pings_in_one_write_are_answered_in_order() {
    let tree = Tree::new();
    let mut server = Server::fresh(command().arg(tree.root()));
    let ping = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
    server.send_raw((0..1_000).map(ping).collect::<String>().into_bytes());
    for id in 0..1_000 {
        assert_eq!(server.receive()["id"], id);
    }
    server.close_quietly();
}

#[test]
fn a_client_that_closes_our_output_ends_us_quietly() {
    let tree = Tree::new();
    tree.write("big.txt", "0123456789\n".repeat(400_000));
    let params = json!({"name": "read_file", "arguments": {"path": "big.txt"}});
    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    // In the middle of a long answer; and before a short one.
    for (before, bytes) in [(read, 100_000), (json!({}), 0)] {
        let mut child = command()
            .args([WHOLE, &tree.text("")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        write!(stdin, "{}\n{before}\n", initialize("2025-11-25")).unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut vec![0; bytes.max(1)]).unwrap();
        drop(stdout);
        // Our input stays open: the closed output alone must end the process. It may be gone
        // already when the last line is written.
        let _ = writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
        let mut stderr = child.stderr.take().unwrap();
        assert_eq!(wait(child).code(), Some(0));
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// The server behind a shell that changes its own process first.
fn behind_shell(change: &str, tree: &Tree, options: &[&str]) -> Server {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{change}; exec \"$0\" \"$@\"")]);
    shell.arg(command().get_program()).args(options).arg(tree.root());
    Server::spawn(&mut shell)
}

#[test]
fn a_closed_or_full_stderr_does_not_matter() {
    let tree = Tree::of(&[("a.txt", "x\n")]);
    for change in ["exec 2>&-", "exec 2>/dev/full"] {
        let mut server = behind_shell(change, &tree, &[]);
        assert_eq!(server.ok("read_file", json!({"path": "a.txt"})).payload(), "x\n");
        assert_eq!(server.close().status.code(), Some(0), "{change}");
    }
}

#[test]
fn sixty_four_handles_are_enough() {
    let tree = Tree::new();
    let mut directory = String::new();
    for level in 0..80 {
        for sibling in ["a", "z"] {
            tree.write(format!("{directory}{sibling}/leaf.txt"), "needle\n");
        }
        tree.write(format!("{directory}level.txt"), format!("level {level}\n"));
        directory.push_str("m/");
    }
    for number in 0..300 {
        tree.write(format!("wide/{number}/leaf.txt"), "needle\n");
    }
    let mut server = behind_shell("ulimit -n 64", &tree, &[WHOLE]);
    server.forbid(tree.text(""));
    let found = server.ok("search_files", json!({"pattern": "leaf.txt", "limit": 100_000}));
    // A walk goes 64 directories deep; what is deeper is counted.
    assert!(found.rows().len() >= 300 + 2 * 60, "{}", found.header());
    assert!(found.number("too deep") > 0, "{}", found.header());
    assert_eq!(found.number("unreadable"), 0, "{}", found.header());
    let text =
        server.ok("search_text", json!({"query": "needle", "output": "files", "limit": 100_000}));
    assert_eq!(text.rows(), found.rows());
    let listed = server.ok("list_directory", json!({"depth": 8, "limit": 100_000}));
    assert!(listed.rows().len() > 600, "{}", listed.header());
    let deepest = format!("{directory}a/leaf.txt").replacen("m/", "", 1);
    assert_eq!(server.ok("read_file", json!({"path": deepest})).payload(), "needle\n");
    let paths: Vec<String> = (0..50).map(|number| format!("wide/{number}/leaf.txt")).collect();
    let several = server.ok("read_multiple_files", json!({"paths": paths}));
    assert_eq!(several.files().len(), 50);
    server.close_quietly();
}

#[test]
fn handles_live_for_one_call() {
    let tree = Tree::of(&[("a/b/c.txt", "needle\n"), ("bad", "\0"), (".env", "x")]);
    tree.link("a/b", "link").link("loop", "loop").fifo("fifo");
    let mut server = Server::new(&tree, &[]);
    let count =
        |server: &Server| fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    let before = count(&server);
    for path in
        ["a/b/c.txt", "link/c.txt", "bad", ".env", "loop", "fifo", "nope/x", "a", "a/b/c.txt/x"]
    {
        for (tool, more) in [
            ("read_file", json!({})),
            ("list_directory", json!({"depth": 8})),
            ("search_text", json!({"query": "n"})),
            ("get_file_info", json!({})),
        ] {
            let mut arguments = more;
            arguments["path"] = json!(path);
            server.call(tool, arguments);
        }
    }
    assert_eq!(count(&server), before);
}

#[test]
fn open_subscriptions_are_bounded() {
    let tree = Tree::new();
    let mut server = Server::fresh(command().arg(tree.root()));
    let modern = "io.modelcontextprotocol/";
    let meta = json!({(format!("{modern}protocolVersion")): "2026-07-28",
        (format!("{modern}clientCapabilities")): {}});
    let params = json!({"_meta": meta, "notifications": {}});
    let listen = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params});
    for id in (0..256).chain([7]) {
        server.send(&listen(id));
        assert!(server.receive()["method"].is_string(), "{id}");
    }
    server.send(&listen(256));
    assert_eq!(server.receive()["error"]["code"], -32603);
    server.end_input();
    for _ in 0..256 {
        assert_eq!(server.receive()["result"]["resultType"], "complete");
    }
    server.close_quietly();
}

#[test]
fn sigterm_ends_us_at_once() {
    let tree = Tree::new();
    let mut server = Server::new(&tree, &[]);
    server.silent();
    run(Command::new("kill").arg(server.pid().to_string()));
    assert!(server.next_line().is_none());
    assert_eq!(server.close().status.code(), None, "ended by the signal");
}

#[test]
fn a_root_that_is_a_link_is_resolved_once() {
    let tree = Tree::of(&[("one/a.txt", "one\n"), ("two/a.txt", "two\n")]);
    tree.link("one", "current");
    let mut server = Server::over(&tree, &[tree.text("current")]);
    let read = |server: &mut Server, path: &str| {
        server.call("read_file", json!({"path": path})).payload().to_owned()
    };
    assert_eq!(read(&mut server, &tree.text("current/a.txt")), "one\n", "as typed");
    assert_eq!(read(&mut server, &tree.text("one/a.txt")), "one\n", "as resolved");
    tree.remove("current").link("two", "current");
    assert_eq!(read(&mut server, "a.txt"), "one\n");
    server.refused("path-excluded", "read_file", json!({"path": tree.text("two/a.txt")}));
}

#[test]
fn host_paths_are_shown_only_when_asked_for() {
    let tree = Tree::of(&[("a.txt", "x\n")]);
    // `Server` fails on any answer with a host path unless the option is there.
    for (options, shown) in [(&[][..], false), (&["--show-host-paths"][..], true)] {
        let mut server = Server::new(&tree, options);
        let roots = server.ok("list_roots", json!({}));
        let file = server.ok("get_file_info", json!({"path": "a.txt"}));
        assert_eq!(roots.text.contains(&tree.text("")), shown, "{}", roots.text);
        assert_eq!(file.text.contains(&tree.text("a.txt")), shown, "{}", file.text);
        let root = server.ok("get_file_info", json!({"path": "."})).text;
        let line = format!("\nhost path: {:?}\n", tree.text(""));
        assert_eq!(root.contains(&line), shown, "{root}");
    }
}

#[test]
fn the_recorded_session_is_answered() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let session = fs::read_to_string(manifest.join("fixtures/session.jsonl")).unwrap();
    let mut server = Server::fresh(command().arg(manifest.join("fixtures/tree")));
    server.forbid(manifest.to_str().unwrap());
    server.forbid("not-a-real");
    let mut tools = Vec::new();
    for line in session.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        server.send_raw(format!("{line}\n").into_bytes());
        if request["id"].is_null() {
            continue;
        }
        let reply = server.receive();
        assert_eq!(reply["id"], request["id"], "{line}");
        let refused = reply["result"]["isError"] == true;
        assert_eq!(refused, line.contains(".env"), "{line}\n{reply}");
        assert!(reply["result"].is_object(), "{line}\n{reply}");
        tools.extend(request["params"]["name"].as_str().map(str::to_owned));
    }
    tools.dedup();
    assert_eq!(tools.len(), 10, "every tool, and a refused read: {tools:?}");
    server.close_quietly();
}

#[test]
fn a_check_tells_what_is_served_and_what_surprises() {
    let tree = Tree::of(&[("a.txt", ""), (".env", ""), ("sub/key.pem", ""), ("target/x", "")]);
    let root = tree.text("");
    let check = |arguments: &[&str]| {
        let mut command = command();
        let output = command.arg("--check").args(arguments).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = check(&[&root]);
    assert_eq!(code, Some(0), "{text}");
    for line in ["file: 1", "default rule .env: 1", "default rule *.pem: 1", "target: 1"] {
        assert!(text.contains(&format!("  {line}\n")), "{line}: {text}");
    }
    assert!(text.ends_with("surprises: 0\n"), "{text}");
    let host_glob = format!("{root}/sub");
    for (arguments, surprise) in [
        (["--exclude", &host_glob, &root], "matches nothing"),
        (["--exclude", "*", &root], "nothing is served"),
        (["--include", "*.nothing", &root], "nothing is served"),
    ] {
        let (code, text) = check(&arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {text}");
        assert!(text.contains(surprise), "{arguments:?}: {text}");
    }
}
