//! What every test needs: a tree of files, a server over pipes, and the laws that each reply
//! keeps whatever was asked. A reply that breaks one fails the test that received it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// After this a silent server counts as hung.
pub const HANG: Duration = Duration::from_secs(60);
/// No reply line may be longer (the read buffer of the official TypeScript client).
const LINE_BYTES_MAX: usize = 10 << 20;
/// Characters of one result's text unless `--max-result-chars` says otherwise.
const RESULT_CHARS: usize = 24_000;
/// `max_chars` below this counts as this.
const PAGE_CHARS_MIN: usize = 1_000;
/// A page large enough to hold everything that a test makes.
pub const WHOLE: &str = "--max-result-chars=8388608";

/// Every code of the contract.
pub const CODES: [&str; 15] = [
    "invalid-argument",
    "path-excluded",
    "unknown-root",
    "file-not-found",
    "not-a-directory",
    "not-a-file",
    "not-text",
    "too-large",
    "permission-denied",
    "io-error",
    "limit-exceeded",
    "invalid-cursor",
    "stale-cursor",
    "root-unavailable",
    "internal-error",
];
/// The header's keys in their order.
const KEYS: [&str; 21] = [
    "lines",
    "bytes",
    "matches",
    "entries",
    "searched",
    "not searched",
    "withheld",
    "unreadable",
    "names not UTF-8",
    "special files",
    "binary",
    "lines not UTF-8",
    "too large",
    "too deep",
    "not checked",
    "pseudo file systems",
    "too long to show",
    "line ends",
    "BOM",
    "no final newline",
    "sha256",
];
/// The keys that count what was left out; `omitted` repeats them.
const COUNTS: &[&str] = KEYS.split_at(5).1.split_at(12).0;

/// A directory that lives as long as the test: `root` is served, what is beside it is outside.
pub struct Tree {
    base: PathBuf,
}

impl Tree {
    /// An empty root, readable by everyone.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("readonly-mcp-it-{}-{number}", std::process::id());
        let base = std::env::temp_dir().canonicalize().unwrap().join(name);
        let tree = Self { base };
        fs::create_dir_all(tree.root()).unwrap();
        tree
    }

    /// The root and files in it: path and content.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self::new();
        for (path, content) in files {
            tree.write(path, content);
        }
        tree
    }

    /// The directory around the root; its spelling may appear in no answer.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The directory that is served.
    pub fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// A host path from one relative to the root; `../x` is beside the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        let beside = path.strip_prefix("..").ok().map(|path| self.base.join(path));
        let path: PathBuf = beside.unwrap_or_else(|| self.root().join(path)).components().collect();
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap();
        }
        path
    }

    /// The same as text, for a client or a command line.
    pub fn text(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().to_owned()
    }

    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(path), content).unwrap();
        self
    }

    pub fn dir(&self, path: impl AsRef<Path>) -> &Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    pub fn link(&self, target: impl AsRef<Path>, path: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
        self
    }

    pub fn fifo(&self, path: impl AsRef<Path>) -> &Self {
        run(Command::new("mkfifo").arg(self.path(path)));
        self
    }

    /// A socket; it stays in the tree when its listener is gone.
    pub fn socket(&self, path: impl AsRef<Path>) -> &Self {
        UnixListener::bind(self.path(path)).unwrap();
        self
    }

    /// A file of `bytes` zeros that occupies no room.
    pub fn sparse(&self, path: impl AsRef<Path>, bytes: u64) -> &Self {
        fs::File::create(self.path(path)).unwrap().set_len(bytes).unwrap();
        self
    }

    pub fn mode(&self, path: impl AsRef<Path>, mode: u32) -> &Self {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Removes whatever has that name.
    pub fn remove(&self, path: impl AsRef<Path>) -> &Self {
        let path = self.path(path);
        if path.symlink_metadata().unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        self
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// A name that is not UTF-8.
pub fn raw(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Runs a helper command that must succeed.
pub fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// The server's command, without arguments.
pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_readonly-mcp"))
}

/// The same without the rights of root: dropped, where that can be done, or never had.
pub fn command_as_nobody() -> Option<Command> {
    let drop = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let works = Command::new("setpriv").args(drop).arg("true").stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        let root = fs::metadata("/proc/self").unwrap().uid() == 0;
        return (!root).then(command);
    }
    let mut command = Command::new("setpriv");
    command.args(drop).arg(env!("CARGO_BIN_EXE_readonly-mcp"));
    Some(command)
}

/// A helper process that a failing test does not leave behind.
pub struct Helper(pub Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The end of a process that is about to end; one that hangs is killed and fails the test.
pub fn wait(mut child: Child) -> ExitStatus {
    let pid = child.id().to_string();
    let (sender, receiver) = channel();
    let waiter = thread::spawn(move || sender.send(child.wait()));
    let Ok(status) = receiver.recv_timeout(HANG) else {
        run(Command::new("kill").args(["-9", &pid]));
        panic!("the process did not end");
    };
    waiter.join().unwrap().unwrap();
    status.unwrap()
}

/// The lower-case digits of a SHA-256.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `initialize` for one of the legacy versions.
pub fn initialize(version: &str) -> Value {
    let info = json!({"name": "it", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// What is left of a server that was closed.
pub struct Closed {
    pub status: ExitStatus,
    pub stderr: String,
    /// Lines that nobody had received.
    pub lines: Vec<Vec<u8>>,
}

/// A running server. Input is written by a thread, so that no test can block on a full pipe.
pub struct Server {
    child: Option<Child>,
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Vec<u8>>,
    stderr: Option<JoinHandle<String>>,
    next_id: u64,
    calls: HashMap<String, (String, Value)>,
    result_chars: usize,
    forbidden: Vec<Vec<u8>>,
}

impl Server {
    /// Serves the tree's root, initialised in the newest legacy version.
    pub fn new(tree: &Tree, options: &[&str]) -> Self {
        let root = tree.root();
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.push(root.as_os_str());
        Self::over(tree, &arguments)
    }

    /// The same with the whole command line given.
    pub fn over(tree: &Tree, arguments: &[impl AsRef<OsStr>]) -> Self {
        let mut server = Self::fresh_over(tree, &mut command(), arguments);
        server.initialize("2025-11-25");
        server
    }

    /// A process that was sent nothing yet and whose answers obey the options given.
    pub fn fresh_over(tree: &Tree, command: &mut Command, arguments: &[impl AsRef<OsStr>]) -> Self {
        let mut server = Self::fresh(command.args(arguments));
        let options: Vec<_> = arguments.iter().filter_map(|a| a.as_ref().to_str()).collect();
        let chars = options.iter().find_map(|option| option.strip_prefix("--max-result-chars="));
        server.result_chars = chars.map_or(RESULT_CHARS, |digits| digits.parse().unwrap());
        if !options.contains(&"--show-host-paths") {
            server.forbid(tree.base().as_os_str().as_bytes());
        }
        server
    }

    /// Over, and initialised.
    pub fn spawn(command: &mut Command) -> Self {
        let mut server = Self::fresh(command);
        server.initialize("2025-11-25");
        server
    }

    /// A process that was sent nothing yet.
    pub fn fresh(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (input, lines_in) = channel::<Vec<u8>>();
        let (lines_out, output) = channel();
        thread::spawn(move || lines_in.iter().all(|line| stdin.write_all(&line).is_ok()));
        thread::spawn(move || {
            let mut stdout = BufReader::with_capacity(1 << 16, stdout);
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                if lines_out.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        });
        Self {
            child: Some(child),
            input: Some(input),
            output,
            stderr: Some(stderr),
            next_id: 1,
            calls: HashMap::new(),
            result_chars: RESULT_CHARS,
            forbidden: Vec::new(),
        }
    }

    /// Opens a legacy session.
    pub fn initialize(&mut self, version: &str) {
        self.send(&initialize(version));
        assert_eq!(self.receive()["result"]["protocolVersion"], version);
    }

    /// Bytes that may stand in no answer from now on.
    pub fn forbid(&mut self, bytes: impl AsRef<[u8]>) {
        self.forbidden.push(bytes.as_ref().to_vec());
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: Vec<u8>) {
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(request) = serde_json::from_slice::<Value>(line) else { continue };
            let params = &request["params"];
            if request["method"] == "tools/call"
                && let Some(tool) = params["name"].as_str()
            {
                let call = (tool.to_owned(), params["arguments"].clone());
                self.calls.insert(request["id"].to_string(), call);
            }
        }
        // A failure to send shows as a missing answer.
        let _ = self.input.as_ref().unwrap().send(bytes);
    }

    /// Sends lines whose answers are counted only: nothing is noted for the laws of results.
    pub fn load(&mut self, lines: Vec<u8>) {
        let _ = self.input.as_ref().unwrap().send(lines);
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").into_bytes());
    }

    /// The next line, or `None` at the end of output. A wait without end fails the test.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        match self.output.recv_timeout(HANG) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the server does not answer"),
        }
    }

    /// The next message, checked against the laws.
    pub fn receive(&mut self) -> Value {
        let line = self.next_line().expect("the server ended its output");
        self.check_line(&line)
    }

    /// The laws of a line: one message, short enough, without what is forbidden; and those of a
    /// tool's result.
    pub fn check_line(&mut self, line: &[u8]) -> Value {
        assert_eq!(line.last(), Some(&b'\n'), "the line does not end");
        assert!(line.len() <= LINE_BYTES_MAX, "a line of {} bytes", line.len());
        for separator in ["\u{85}", "\u{2028}", "\u{2029}"] {
            let found = memchr::memmem::find(line, separator.as_bytes());
            assert!(found.is_none(), "some readers end a line at {separator:?}");
        }
        for bytes in &self.forbidden {
            let found = memchr::memmem::find(line, bytes);
            assert!(found.is_none(), "leak: {}", String::from_utf8_lossy(line));
        }
        let value: Value = serde_json::from_slice(line).unwrap();
        for one in value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice) {
            if let Some((tool, arguments)) = self.calls.remove(&one["id"].to_string())
                && one.get("result").is_some()
            {
                let reply = Reply::new(one.clone());
                if let Err(law) = reply.keeps_laws(&tool, &arguments, self.result_chars) {
                    panic!("{law}\n{tool} {arguments}\n{reply:?}");
                }
            }
        }
        value
    }

    /// Calls a tool and returns its checked result, which may be an error.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let id = self.next_id;
        self.next_id += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        let value = self.receive();
        assert_eq!(value["id"], id, "{value}");
        Reply::new(value)
    }

    /// Calls a tool that must succeed.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Reply {
        let reply = self.call(tool, arguments.clone());
        assert_eq!(reply.code(), "", "{tool} {arguments}\n{reply:?}");
        reply
    }

    /// Calls a tool that must refuse with this code, and returns the whole text.
    pub fn refused(&mut self, code: &str, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments.clone());
        assert_eq!(reply.code(), code, "{tool} {arguments}\n{reply:?}");
        reply.text
    }

    /// All pages of a call. Each but the last must name a new cursor.
    pub fn pages(&mut self, tool: &str, arguments: &Value) -> Vec<Reply> {
        let mut arguments = arguments.clone();
        let mut pages = Vec::new();
        loop {
            let reply = self.ok(tool, arguments.clone());
            let cursor = reply.cursor().map(str::to_owned);
            pages.push(reply);
            let Some(cursor) = cursor else { return pages };
            assert_ne!(arguments["cursor"], cursor, "{tool} {arguments} does not advance");
            assert!(pages.len() < 100_000, "{tool} {arguments} does not end");
            arguments["cursor"] = json!(cursor);
        }
    }

    /// Proves that nothing more was said: the next line is the answer to a ping.
    pub fn silent(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "id": "silence", "method": "ping"}));
        assert_eq!(self.receive(), json!({"jsonrpc": "2.0", "id": "silence", "result": {}}));
    }

    /// Ends the input; more output can still be received.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Ends the input and waits for the process to end.
    pub fn close(mut self) -> Closed {
        self.end_input();
        let lines = std::iter::from_fn(|| self.next_line()).collect();
        let status = wait(self.child.take().unwrap());
        Closed { status, stderr: self.stderr.take().unwrap().join().unwrap(), lines }
    }

    /// Closes a session that went well: exit code 0, nothing left to say, one line on stderr.
    pub fn close_quietly(self) {
        let closed = self.close();
        assert_eq!(closed.status.code(), Some(0), "{}", closed.stderr);
        assert!(closed.lines.is_empty(), "{:?}", closed.lines);
        assert_eq!(closed.stderr.lines().count(), 1, "{}", closed.stderr);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The result of a tool call.
#[derive(Clone)]
pub struct Reply {
    pub value: Value,
    pub text: String,
}

impl Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.text.chars().take(2_000).collect();
        write!(f, "{text}\n{}", self.value["result"]["_meta"])
    }
}

impl Reply {
    /// From a message with a result that has one text block.
    pub fn new(value: Value) -> Self {
        let content = &value["result"]["content"];
        assert_eq!(content.as_array().map(Vec::len), Some(1), "one block is expected: {value}");
        let block = &content[0];
        assert_eq!(block["type"], "text");
        Self { text: block["text"].as_str().unwrap().to_owned(), value }
    }

    /// The code of an error; empty for a success.
    pub fn code(&self) -> &str {
        let error = self.value["result"]["isError"] == true;
        if error { self.text.split_once(": ").map_or("?", |(code, _)| code) } else { "" }
    }

    /// The first line.
    pub fn header(&self) -> &str {
        self.text.split_once('\n').map_or(self.text.as_str(), |(header, _)| header)
    }

    /// What follows the first line.
    pub fn payload(&self) -> &str {
        self.text.split_once('\n').map_or("", |(_, payload)| payload)
    }

    pub fn rows(&self) -> Vec<&str> {
        self.payload().lines().collect()
    }

    /// `complete`, as opposed to `more`.
    pub fn complete(&self) -> bool {
        self.header() == "complete" || self.header().starts_with("complete; ")
    }

    /// The header's facts: key and value.
    pub fn facts(&self) -> Vec<(&str, &str)> {
        let split = |fact| str::split_once(fact, ": ").unwrap_or((fact, ""));
        self.header().split("; ").skip(1).map(split).collect()
    }

    /// One fact; the empty string when it is not there.
    pub fn fact(&self, key: &str) -> &str {
        self.facts().iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    }

    /// The first number of a fact, 0 when it is not there.
    pub fn number(&self, key: &str) -> u64 {
        let digits: String = self.fact(key).chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    /// A member of our `_meta`.
    pub fn meta(&self, key: &str) -> &Value {
        &self.value["result"]["_meta"]["readonly-mcp/result"][key]
    }

    /// The cursor for the same tool.
    pub fn cursor(&self) -> Option<&str> {
        self.meta("next_cursor").as_str()
    }

    /// The paths of rows that have one, without their tags.
    pub fn paths(&self) -> Vec<&str> {
        let rows = self.payload().lines().filter(|row| row.starts_with('['));
        rows.map(|row| {
            let rest = row.split_once("] ").map_or(row, |(_, rest)| rest);
            let rest = rest.split_once(" -> ").map_or(rest, |(name, _)| name);
            rest.split_once("  ").map_or(rest, |(name, _)| name)
        })
        .collect()
    }

    /// The laws that hold for every result of every tool.
    fn keeps_laws(&self, tool: &str, arguments: &Value, chars: usize) -> Result<(), String> {
        let law = |holds: bool, text: &str| if holds { Ok(()) } else { Err(text.to_owned()) };
        let result = &self.value["result"];
        law(result.get("structuredContent").is_none(), "no structuredContent")?;
        if result["isError"] == true {
            law(CODES.contains(&self.code()), "an error begins with a code of the contract")?;
            return law(self.text.len() > self.code().len() + 2, "an error says what is wrong");
        }
        let narrowed =
            arguments["max_chars"].as_u64().map_or(usize::MAX, |n| usize::try_from(n).unwrap());
        let budget = chars.min(narrowed.max(PAGE_CHARS_MIN));
        law(self.text.chars().count() <= budget, "the text fits its budget")?;
        let (complete, header) = (self.complete(), self.header());
        law(complete || header == "more" || header.starts_with("more; "), "complete or more")?;
        law(self.meta("complete") == complete, "_meta repeats complete")?;
        law(header.matches("cursor").count() <= 1, "the word cursor stands once")?;
        self.facts_in_order()?;
        let cursor = self.fact("cursor");
        if ["read_file_range", "read_multiple_files", "tail_file"].contains(&tool) {
            law(self.meta("next_cursor").is_null(), "next_cursor is null in a tool without one")?;
            law(cursor.is_empty() || self.fact("next") == "read_file", "whose cursor is said")?;
        } else {
            law(self.cursor().unwrap_or("") == cursor, "next_cursor is the header's cursor")?;
            let pageable = !["list_roots", "get_file_info"].contains(&tool);
            law(complete || !cursor.is_empty() || !pageable, "more comes with a cursor")?;
            law(!complete || cursor.is_empty(), "a cursor comes with more")?;
        }
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        law(cursor.chars().all(legal) && cursor.len() <= 64, "cursors are short and plain")?;
        let hash = self.fact("sha256");
        law(self.meta("content_hash") == &json!(format!("sha256:{hash}")), "one hash")?;
        if let Some(bytes) = self.hashed(tool, arguments) {
            law(sha256(&bytes) == hash, "the hash is that of what was returned")?;
        }
        let rows = !tool.starts_with("read_file") && tool != "tail_file";
        let ended = self.payload().is_empty() || self.payload().ends_with('\n');
        law(!rows || ended, "every row ends")?;
        self.omissions_agree()
    }

    /// Keys are those of the contract, each once, in their order; `next` and `cursor` come last.
    fn facts_in_order(&self) -> Result<(), String> {
        let mut last = None;
        for (key, _) in self.facts() {
            let all = KEYS.iter().chain(&["next", "cursor"]);
            let rank = all.clone().position(|known| *known == key);
            if rank.is_none() || rank <= last {
                return Err(format!("the fact {key:?} is unknown or out of order"));
            }
            last = rank;
        }
        Ok(())
    }

    /// The counts in the header and in `omitted` are the same.
    fn omissions_agree(&self) -> Result<(), String> {
        let none = Map::new();
        let omitted = self.meta("omitted").as_object().unwrap_or(&none);
        let in_header = self.facts().into_iter().map(|(key, _)| key);
        let counted = in_header.filter(|key| COUNTS.contains(key));
        for key in counted.chain(omitted.keys().map(String::as_str)) {
            let count = omitted.get(key).and_then(Value::as_u64).unwrap_or(0);
            let names = u64::try_from(self.fact(key).split(", ").filter(|s| !s.is_empty()).count());
            let agree = match key {
                "not searched" => {
                    names.is_ok_and(|names| names <= count && (names > 0) == (count > 0))
                }
                _ => count == self.number(key),
            };
            if !agree || !COUNTS.contains(&key) {
                return Err(format!("{key:?} is {count} in omitted"));
            }
        }
        Ok(())
    }

    /// The bytes that `content_hash` speaks of, where the reply alone tells them.
    fn hashed(&self, tool: &str, arguments: &Value) -> Option<Vec<u8>> {
        let payload = self.payload();
        let replaced = arguments["lossy"] == true && payload.contains('\u{fffd}');
        match tool {
            "read_file" | "read_file_range" | "tail_file" if replaced => None,
            "read_file" | "read_file_range" | "tail_file" if arguments["line_numbers"] == true => {
                let lines = payload.split_inclusive('\n');
                let bare = lines.map(|line| line.split_once('|').map_or("", |(_, text)| text));
                arguments["cursor"].is_null().then(|| bare.collect::<String>().into_bytes())
            }
            "read_multiple_files" if replaced => None,
            "read_multiple_files" => {
                let texts = self.files().into_iter().map(|(_, text)| text);
                Some(texts.collect::<String>().into_bytes())
            }
            _ => Some(payload.as_bytes().to_vec()),
        }
    }

    /// The `[FILE]` rows of `read_multiple_files` with the text that follows each.
    pub fn files(&self) -> Vec<(&str, &str)> {
        let (mut files, mut rest) = (Vec::new(), self.payload());
        while let Some((row, after)) = rest.split_once('\n') {
            rest = after;
            let Some(columns) = row.strip_prefix("[FILE] ") else { continue };
            let columns = columns.split_once("  cursor: ").map_or(columns, |(before, _)| before);
            let (path, bytes) = columns.rsplit_once("  ").expect("PATH  BYTES");
            let (text, after) = rest.split_at(bytes.parse().expect("a number of bytes"));
            files.push((path, text));
            rest = after.strip_prefix('\n').expect("a newline after the text");
        }
        files
    }
}

/// A seeded generator (xorshift); the seed is printed when the test fails.
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// From the variable `IT_SEED`, or from the clock.
    pub fn new() -> Self {
        let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
        let given: Option<u64> =
            std::env::var("IT_SEED").ok().and_then(|digits| digits.parse().ok());
        let seed = given.unwrap_or_else(clock) | 1;
        Self { seed, state: seed }
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % u64::try_from(limit).unwrap()).unwrap()
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(std::io::stderr(), "IT_SEED={}", self.seed);
        }
    }
}

/// A reply as a well-behaved server makes it, for the tests of the laws themselves.
fn lawful(header: &str, payload: &str, next: Option<&str>, omitted: Value) -> Value {
    let hash = sha256(payload.as_bytes());
    let header = header.replace("HASH", &hash);
    let ours = json!({"complete": !header.starts_with("more"), "next_cursor": next,
        "content_hash": format!("sha256:{hash}"), "omitted": omitted});
    let content = json!([{"type": "text", "text": format!("{header}\n{payload}")}]);
    json!({"result": {"content": content, "_meta": {"readonly-mcp/result": ours}}})
}

#[test]
fn the_laws_can_be_broken() {
    let check = |reply| Reply::new(reply).keeps_laws("search_files", &json!({}), 60_000);
    let good = "more; matches: 1; withheld: 2; sha256: HASH; cursor: abc";
    let two = json!({"withheld": 2});
    assert_eq!(check(lawful(good, "[FILE] a\n", Some("abc"), two.clone())), Ok(()));
    let broken = [
        lawful("more; matches: 1; withheld: 2; sha256: HASH", "a\n", None, two.clone()),
        lawful("done; sha256: HASH", "a\n", None, json!({})),
        lawful("complete; sha256: HASH; matches: 1", "a\n", None, json!({})),
        lawful("complete; matches: 1; matches: 1; sha256: HASH", "a\n", None, json!({})),
        lawful("complete; found: 1; sha256: HASH", "a\n", None, json!({})),
        lawful("complete; sha256: 00", "a\n", None, json!({})),
        lawful("complete; sha256: HASH", "a", None, json!({})),
        lawful("complete; sha256: HASH", &"a\n".repeat(40_000), None, json!({})),
        lawful("complete; sha256: HASH", "a\n", None, two.clone()),
        lawful("complete; binary: 1; sha256: HASH", "a\n", None, json!({})),
        lawful("complete; sha256: HASH; cursor: abc", "a\n", Some("abc"), json!({})),
        lawful(good, "a\n", Some("abd"), two.clone()),
        lawful(good, "a\n", None, two.clone()),
        lawful(&good.replace("abc", "aBc"), "a\n", Some("aBc"), two),
    ];
    for (number, reply) in broken.into_iter().enumerate() {
        assert!(check(reply.clone()).is_err(), "{number}: {reply}");
    }
}
