//! MCP: which method is served in which era, and what its answer looks like on the wire.
//!
//! Decides nothing about files, never sends a request, and remembers two things only: the version
//! that `initialize` agreed on, and the open `subscriptions/listen` ids. A modern request (one that
//! carries its own version) never reads the former.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::check;
use crate::config::Config;
use crate::cursor::Seal;
use crate::disk;
use crate::error::{Code, ConfigError, ToolError, quoted};
use crate::escape::{escape_into, json_string};
use crate::instructions;
use crate::limits::{
    BATCH_MESSAGES_MAX, CALL_BYTES_MIN, CALL_OVERHEAD_BYTES, REPLY_BYTES_MAX,
    SUBSCRIPTION_BYTES_MAX, SUBSCRIPTIONS_MAX, UNPARSABLE_LINES_MAX,
};
use crate::page::Page;
use crate::rpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Line, LineReader, METHOD_NOT_FOUND, Message,
    Request, RequestId, RpcError, message, parse, reply, reply_start, write_member,
};
use crate::tool::{Call, Tool};
use crate::tools::TOOLS;
use crate::tree::Tree;

/// The one modern version, offered by `server/discover` and by the error for any other.
const MODERN: &str = "2026-07-28";
/// The versions of the handshake; an unknown wish gets the newest. They are dates and compare as
/// text: what a reply may hold depends on that.
const LEGACY: [&str; 4] = ["2024-11-05", WITH_ANNOTATIONS, WITH_TITLES, "2025-11-25"];
/// Tools have annotations from here on; and this is the only version with batches.
const WITH_ANNOTATIONS: &str = "2025-03-26";
/// Tools and servers have titles from here on.
const WITH_TITLES: &str = "2025-06-18";
/// The modern era's own error code.
const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32_022;
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// For a call whose share of the reply line is too small, mostly in a batch.
const NO_ROOM: &str = "the reply line has no room for this: send the calls singly, with short ids";
/// How long a client may keep what `server/discover` and `tools/list` say: not across a day's
/// restarts, since the operator may have changed the options.
const CACHE_MS: u32 = 300_000;

/// A server for one client.
pub struct Server {
    config: Config,
    tree: Tree,
    seal: Seal,
    instructions: String,
    state: State,
}

/// All that is remembered from one line to the next.
#[derive(Default)]
struct State {
    /// What `initialize` agreed on.
    legacy: Option<&'static str>,
    /// The ids of open `subscriptions/listen` requests.
    subscriptions: Vec<RequestId>,
    unparsable_lines: u32,
    incidents: u64,
}

/// A reply without its newline: `bytes` from `start` on, so that a payload need not move.
struct Reply {
    bytes: Vec<u8>,
    start: usize,
}

impl<T: Into<Vec<u8>>> From<T> for Reply {
    fn from(bytes: T) -> Self {
        Self { bytes: bytes.into(), start: 0 }
    }
}

impl Reply {
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Writes the reply and its newline as one piece.
    fn send(mut self, out: &mut impl Write) -> io::Result<()> {
        self.bytes.push(b'\n');
        out.write_all(self.as_slice())?;
        out.flush()
    }
}

impl Server {
    /// Opens the roots and proves that this system confines as it should. Errors: a limit or alias
    /// that is not allowed, a root that cannot be served, two equal aliases, or a system on which
    /// the self-test fails.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let fault = |text: String| ConfigError(text);
        config.check()?;
        disk::self_test()
            .map_err(|why| fault(format!("the self-test failed, so nothing is served: {why}")))?;
        let tree = Tree::open(&config)?;
        let seal = Seal::new().map_err(|_| fault("the system gives no random bytes".into()))?;
        let instructions = instructions::text(&config, &tree);
        let state = State::default();
        Ok(Self { config, tree, seal, instructions, state })
    }

    /// What is served, on one line, for the operator's terminal: it holds host paths.
    pub fn summary(&self) -> String {
        let show = |(alias, host): (&str, &Path)| {
            format!("{alias} = {}", json_string(&host.to_string_lossy()))
        };
        let roots: Vec<_> = self.tree.roots().map(show).collect();
        format!("{} serves read-only: {}", env!("CARGO_PKG_VERSION"), roots.join(", "))
    }

    /// What a client would see, for a person to read, and whether nothing of it is surprising. With
    /// `progress`, stderr tells how far a long walk is. Errors: a root that cannot be read.
    pub fn check(&self, progress: bool) -> Result<(String, bool), ConfigError> {
        let report = check::report(&self.call(REPLY_BYTES_MAX), progress);
        report.map_err(|error| ConfigError(error.to_string()))
    }

    fn call(&self, reply_bytes_max: usize) -> Call<'_> {
        self.tree.begin_call();
        Call { tree: &self.tree, seal: &self.seal, config: &self.config, reply_bytes_max }
    }

    /// Serves until the input ends or the output is closed; neither is an error.
    pub fn serve(mut self, mut reader: impl BufRead, mut writer: impl Write) {
        let bytes_max = usize::try_from(self.config.max_request_bytes).unwrap_or(usize::MAX);
        let mut lines = LineReader { bytes_max, at_start: true };
        let mut line = Vec::new();
        loop {
            let written = match lines.read_line(&mut reader, &mut line) {
                Line::Text => self.answer(&line, &mut writer),
                Line::TooLong => {
                    let text = format!("a request line has at most {bytes_max} bytes");
                    Reply::from(RpcError::new(INVALID_REQUEST, text)).send(&mut writer)
                }
                Line::End => break drop(self.finish(&mut writer)),
            };
            if written.is_err() {
                break;
            }
        }
    }

    /// Answers one line, with or without its newline. What is written, if anything, is one line in
    /// one call of `write_all`, flushed. The length of lines is bounded by [`Server::serve`], not
    /// here. Fails only if `out` does.
    pub fn answer(&mut self, line: &[u8], out: &mut impl Write) -> io::Result<()> {
        if line.iter().all(|byte| b" \t\r\n".contains(byte)) {
            return Ok(());
        }
        let parsed = parse(line);
        let unparsable_lines = if parsed.is_ok() { 0 } else { self.state.unparsable_lines + 1 };
        self.state.unparsable_lines = unparsable_lines.min(UNPARSABLE_LINES_MAX + 1);
        let reply = match parsed {
            Ok(Value::Array(values)) => self.receive_batch(values),
            Ok(value) => self.receive(message(value), REPLY_BYTES_MAX),
            Err(_) if UNPARSABLE_LINES_MAX < self.state.unparsable_lines => None,
            Err(error) => Some(error.into()),
        };
        reply.map_or(Ok(()), |reply| reply.send(out))
    }

    /// Ends every open subscription, as is due when the input ends.
    pub fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        for id in std::mem::take(&mut self.state.subscriptions) {
            let result = complete(json!({"_meta": {SUBSCRIPTION_ID: id}}), MODERN);
            Reply::from(reply(Some(&id), "result", &result)).send(out)?;
        }
        Ok(())
    }

    fn receive(&mut self, message: Result<Message, RpcError>, room: usize) -> Option<Reply> {
        match message {
            Ok(Message::Request(request)) => Some(self.respond(&request, room)),
            Ok(Message::Notification(method, params)) => {
                if method == "notifications/cancelled" {
                    let id = params.get("requestId").and_then(RequestId::new);
                    self.state.subscriptions.retain(|open| Some(open) != id.as_ref());
                }
                None
            }
            Ok(Message::Response) => None,
            Err(error) => Some(error.into()),
        }
    }

    /// Answers a batch by one line, of which every message gets an equal share.
    fn receive_batch(&mut self, values: Vec<Value>) -> Option<Reply> {
        let fault = |text: String| Some(RpcError::new(INVALID_REQUEST, text).into());
        if self.state.legacy != Some(WITH_ANNOTATIONS) {
            return fault("batches exist in 2025-03-26 only, after initialize".into());
        }
        if values.is_empty() || BATCH_MESSAGES_MAX < values.len() {
            return fault(format!("a batch holds 1 to {BATCH_MESSAGES_MAX} messages"));
        }
        let room = (REPLY_BYTES_MAX / values.len()).saturating_sub(CALL_OVERHEAD_BYTES);
        let mut line = vec![b'['];
        for value in values {
            let message = match message(value) {
                Ok(Message::Request(Request { id, method, .. }))
                    if method == "initialize" || method == "subscriptions/listen" =>
                {
                    let text = format!("{method} cannot be part of a batch");
                    Err(RpcError { id: Some(id), ..RpcError::new(INVALID_REQUEST, text) })
                }
                message => message,
            };
            if let Some(reply) = self.receive(message, room) {
                line.extend_from_slice(reply.as_slice());
                line.push(b',');
            }
        }
        if REPLY_BYTES_MAX < line.len() {
            return fault("the replies to this batch are too long: send less at once".into());
        }
        // The last comma, if there was any reply.
        (line.pop() == Some(b',')).then(|| {
            line.push(b']');
            line.into()
        })
    }

    /// Answers a request, come what may: a panic is our fault and ends neither the process nor the
    /// wait of the client. `room` bounds the reply to `tools/call`, in bytes.
    fn respond(&mut self, request: &Request, room: usize) -> Reply {
        let error = match catch_unwind(AssertUnwindSafe(|| self.dispatch(request, room))) {
            Ok(Ok(reply)) => return reply,
            Ok(Err(error)) => error,
            Err(panic) => {
                let text = self.incident(panic_text(&*panic));
                if request.method == "tools/call" {
                    let era = if claims_modern(request) { MODERN } else { "" };
                    return call_failed(request, &ToolError::new(Code::InternalError, text), era);
                }
                RpcError::new(INTERNAL_ERROR, text)
            }
        };
        RpcError { id: Some(request.id.clone()), ..error }.into()
    }

    /// Numbers a fault of this program: the sentence for the client, the detail for the operator.
    fn incident(&mut self, detail: &str) -> String {
        self.state.incidents += 1;
        let text = format!("incident {}", self.state.incidents);
        // Not `eprintln`, which panics when stderr is closed.
        let _ = writeln!(io::stderr(), "readonly-mcp: {text}: {}", quoted(detail));
        format!("a fault of this server, {text}; its stderr says more")
    }

    fn dispatch(&mut self, request: &Request, room: usize) -> Result<Reply, RpcError> {
        let modern = claims_modern(request);
        if modern {
            check_metadata(request)?;
        }
        let version = if modern { Some(MODERN) } else { self.state.legacy };
        match (request.method.as_str(), modern, version) {
            ("server/discover", true, _) => Ok(self.discover(request)),
            ("subscriptions/listen", true, _) => self.listen(request),
            ("initialize", false, _) => self.initialize(request),
            ("ping", false, _) => Ok(result(request, &json!({}))),
            ("tools/list", _, Some(version)) => list_tools(request, version),
            ("tools/call", _, Some(version)) => self.call_tool(request, version, room),
            ("tools/list" | "tools/call", _, None) => Err(invalid_params(format!(
                "call initialize first, or send {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES} in \
                 params._meta"
            ))),
            (name, ..) => {
                Err(RpcError::new(METHOD_NOT_FOUND, format!("no method {} here", quoted(name))))
            }
        }
    }

    fn initialize(&mut self, request: &Request) -> Result<Reply, RpcError> {
        let Some(wish) = request.params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(invalid_params("protocolVersion must be a string"));
        };
        let [.., newest] = LEGACY;
        let version = LEGACY.into_iter().find(|version| *version == wish).unwrap_or(newest);
        self.state.legacy = Some(version);
        let reply = json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": server_info(version),
            "instructions": self.instructions,
        });
        Ok(result(request, &reply))
    }

    fn discover(&self, request: &Request) -> Reply {
        let reply = json!({
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {}},
            "instructions": self.instructions,
            "ttlMs": CACHE_MS,
            "cacheScope": "private",
        });
        result(request, &complete(reply, MODERN))
    }

    /// Acknowledges a subscription, of whose wishes none is served, and leaves it open.
    fn listen(&mut self, request: &Request) -> Result<Reply, RpcError> {
        if !request.params.get("notifications").is_some_and(Value::is_object) {
            return Err(invalid_params("notifications must be an object"));
        }
        let mut line = b"{\"jsonrpc\":\"2.0\"".to_vec();
        let meta = json!({SUBSCRIPTION_ID: request.id});
        write_member(&mut line, "method", &"notifications/subscriptions/acknowledged");
        write_member(&mut line, "params", &json!({"_meta": meta, "notifications": {}}));
        line.push(b'}');
        // Each id is kept until its end, so that neither their number nor their length is free.
        if SUBSCRIPTION_BYTES_MAX < line.len() {
            return Err(invalid_params("the id of a subscription must be short"));
        }
        self.state.subscriptions.retain(|open| *open != request.id);
        if SUBSCRIPTIONS_MAX <= self.state.subscriptions.len() {
            let text = format!("at most {SUBSCRIPTIONS_MAX} subscriptions can be open");
            return Err(RpcError::new(INTERNAL_ERROR, text));
        }
        self.state.subscriptions.push(request.id.clone());
        Ok(line.into())
    }

    fn call_tool(&mut self, request: &Request, era: &str, room: usize) -> Result<Reply, RpcError> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Err(invalid_params("name must be a string"));
        };
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
            let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            let text = format!("unknown tool {}: use {}", quoted(name), names.join(", "));
            return Err(invalid_params(text));
        };
        let none = Map::new();
        let arguments = match request.params.get("arguments") {
            Some(Value::Object(arguments)) => arguments,
            None | Some(Value::Null) => &none,
            Some(_) => return Err(invalid_params("arguments must be an object")),
        };
        let start = reply_start(Some(&request.id));
        let room = room.saturating_sub(start.len());
        let mut error = match room < CALL_BYTES_MIN {
            true => ToolError::new(Code::LimitExceeded, NO_ROOM),
            false => match (tool.run)(&self.call(room), arguments) {
                Ok(page) => return Ok(call_succeeded(start, page, era)),
                Err(error) => error,
            },
        };
        if error.code == Code::InternalError {
            error.sentence = self.incident(&error.sentence);
        }
        Ok(call_failed(request, &error, era))
    }
}

/// Whether a request belongs to the modern era: by its metadata, or by a method of that era only.
fn claims_modern(request: &Request) -> bool {
    let keys = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
    let meta = request.params.get("_meta").and_then(Value::as_object);
    meta.is_some_and(|meta| keys.iter().any(|key| meta.contains_key(*key)))
        || matches!(request.method.as_str(), "server/discover" | "subscriptions/listen")
}

/// The metadata of a modern request. The version comes before all else, and before the method: a
/// later client must learn "wrong version", not "no such method".
fn check_metadata(request: &Request) -> Result<(), RpcError> {
    let meta = request.params.get("_meta").unwrap_or(&Value::Null);
    let wrong = |key, what| Err(invalid_params(format!("params._meta[\"{key}\"] must be {what}")));
    let Some(version) = meta.get(PROTOCOL_VERSION).and_then(Value::as_str) else {
        return wrong(PROTOCOL_VERSION, "a string");
    };
    if version != MODERN {
        let data = Some(json!({"supported": [MODERN], "requested": version}));
        let error = RpcError::new(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version");
        return Err(RpcError { data, ..error });
    }
    let is_level = |level: &Value| level.as_str().is_some_and(|level| LOG_LEVELS.contains(&level));
    match (meta.get(CLIENT_CAPABILITIES), meta.get(LOG_LEVEL)) {
        (Some(Value::Object(_)), level) if level.is_none_or(is_level) => Ok(()),
        (Some(Value::Object(_)), _) => wrong(LOG_LEVEL, "a level name"),
        _ => wrong(CLIENT_CAPABILITIES, "an object"),
    }
}

fn invalid_params(text: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_PARAMS, text)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no detail")
}

/// Who we are.
fn server_info(version: &str) -> Value {
    let mut info = json!({"name": "readonly-mcp", "version": env!("CARGO_PKG_VERSION")});
    if WITH_TITLES <= version {
        info["title"] = "Read-only files".into();
    }
    info
}

/// The result with what the modern era wants in each of them.
fn complete(mut result: Value, version: &str) -> Value {
    if version == MODERN {
        result["resultType"] = "complete".into();
        result["_meta"][SERVER_INFO] = server_info(MODERN);
    }
    result
}

/// All tools on one page; no cursor was ever given out, so none is right. Written member by member,
/// because `json!` sorts, and the order of arguments is for models to read.
fn list_tools(request: &Request, version: &str) -> Result<Reply, RpcError> {
    if request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(invalid_params("tools/list is one page: leave cursor out"));
    }
    let mut out = reply_start(Some(&request.id));
    out.extend_from_slice(b",\"result\":{\"tools\":[");
    for tool in TOOLS {
        write_tool(&mut out, tool, version);
        out.push(b',');
    }
    out.pop();
    out.push(b']');
    if version == MODERN {
        write_member(&mut out, "resultType", &"complete");
        write_member(&mut out, "ttlMs", &CACHE_MS);
        write_member(&mut out, "cacheScope", &"private");
        write_member(&mut out, "_meta", &json!({SERVER_INFO: server_info(MODERN)}));
    }
    out.extend_from_slice(b"}}");
    Ok(out.into())
}

fn write_tool(out: &mut Vec<u8>, tool: &Tool, version: &str) {
    out.push(b'{');
    write_member(out, "name", &tool.name);
    if WITH_TITLES <= version {
        write_member(out, "title", &tool.title);
    }
    write_member(out, "description", &tool.description);
    out.extend_from_slice(b",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
    for parameter in tool.parameters {
        write_member(out, parameter.name, parameter);
    }
    out.push(b'}');
    let required = tool.parameters.iter().filter(|parameter| parameter.required);
    let required: Vec<_> = required.map(|parameter| parameter.name).collect();
    if !required.is_empty() {
        write_member(out, "required", &required);
    }
    out.push(b'}');
    if WITH_ANNOTATIONS <= version {
        // Clients that ignore `readOnlyHint` may still heed the others.
        let hints = [("readOnlyHint", true), ("destructiveHint", false)];
        let hints = hints.into_iter().chain([("idempotentHint", true), ("openWorldHint", false)]);
        write_member(out, "annotations", &hints.collect::<BTreeMap<_, _>>());
    }
    out.push(b'}');
}

/// The reply of a call that worked, built around the payload in its place.
fn call_succeeded(mut start: Vec<u8>, page: Page, version: &str) -> Reply {
    let (header, mut bytes, machine) = page.finish();
    start.extend_from_slice(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
    escape_into(&mut start, &header);
    start.extend_from_slice(b"\\n");
    bytes.extend_from_slice(b"\"}],\"isError\":false");
    let mut meta = json!({"readonly-mcp/result": machine});
    if version == MODERN {
        write_member(&mut bytes, "resultType", &"complete");
        meta[SERVER_INFO] = server_info(MODERN);
    }
    write_member(&mut bytes, "_meta", &meta);
    bytes.extend_from_slice(b"}}");
    // A long id may exceed the gap; then the payload has to move after all.
    let from = Page::GAP.saturating_sub(start.len());
    bytes.splice(from..Page::GAP, start);
    Reply { bytes, start: from }
}

/// The reply of a call that failed: the model reads why.
fn call_failed(request: &Request, error: &ToolError, version: &str) -> Reply {
    let content = json!([{"type": "text", "text": error.to_string()}]);
    result(request, &complete(json!({"content": content, "isError": true}), version))
}

fn result(request: &Request, result: &Value) -> Reply {
    reply(Some(&request.id), "result", result).into()
}
