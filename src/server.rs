//! MCP: which method is served in which era, and what its answer looks like on the wire.
//!
//! Decides nothing about files and never sends a request. A modern request (one that carries its
//! own version) never reads what `initialize` agreed on.

use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::cursor::Seal;
use crate::error::{Code, ConfigError, ToolError, quoted};
use crate::escape::{json_string, object, to_json};
use crate::page::Page;
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::rpc::{Request, fault, message, parse, reply};
use crate::tool::{Call, Tool};
use crate::tools::TOOLS;
use crate::tree::{Root, Tree};
use crate::{check, disk, instructions, limits};

const MODERN: &str = "2026-07-28"; // the only one of its era
/// Versions of the handshake; an unknown wish gets the first. Dates, which compare as text.
const LEGACY: [&str; 4] = ["2025-11-25", WITH_TITLES, WITH_ANNOTATIONS, "2024-11-05"];
const WITH_ANNOTATIONS: &str = "2025-03-26"; // and later ones; the only one with batches
const WITH_TITLES: &str = "2025-06-18"; // and later ones
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVELS: &str = "debug info notice warning error critical alert emergency";
/// For `server/discover` and `tools/list`; not long, since a restart may change the options.
const CACHE_MS: u32 = 300_000;

/// A server for one client.
pub struct Server {
    config: Config,
    tree: Tree,
    seal: Seal,
    legacy: &'static str, // the version that `initialize` agreed on; empty before
    subscriptions: Vec<Option<Value>>, // ids of open `subscriptions/listen` requests
    unparsable_in_a_row: u64,
    incidents: u64,
}

/// A reply without its newline, or the error that is to be one.
type Reply = Result<Vec<u8>, Value>;

impl Server {
    /// Opens the roots and proves that this system confines as it should. Errors: a limit or alias
    /// that is not allowed, a root that cannot be served, two equal aliases, or a system on which
    /// the self-test fails.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let failed = |why| ConfigError(format!("the self-test failed; nothing is served: {why}"));
        disk::self_test().map_err(failed)?;
        let tree = Tree::open(&config)?;
        let seal = Seal::new().map_err(|_| ConfigError("the system has no random bytes".into()))?;
        let (legacy, subscriptions, unparsable_in_a_row, incidents) = Default::default();
        Ok(Self { config, tree, seal, legacy, subscriptions, unparsable_in_a_row, incidents })
    }

    /// What is served, on one line, for the operator's terminal: it holds host paths.
    pub fn summary(&self) -> String {
        let host = |root: &Root| json_string(&root.resolved.to_string_lossy());
        let show = |root: &Root| format!("{} = {}", root.alias, host(root));
        let roots: Vec<_> = self.tree.roots.iter().map(show).collect();
        format!("{} serves read-only: {}", env!("CARGO_PKG_VERSION"), roots.join(", "))
    }

    /// What a client would see, for a person to read, and whether nothing of it is surprising. With
    /// `progress`, stderr tells how far a long walk is. Errors: a root that cannot be read.
    pub fn check(&self, progress: bool) -> Result<(String, bool), ConfigError> {
        let report = check::report(&self.call(limits::REPLY_BYTES_MAX), progress);
        report.map_err(|error| ConfigError(error.to_string()))
    }

    fn call(&self, reply_bytes_max: usize) -> Call<'_> {
        // Mounts may change between calls.
        self.tree.mounts.0.borrow_mut().clear();
        Call { tree: &self.tree, seal: &self.seal, config: &self.config, reply_bytes_max }
    }

    /// Serves until the input ends or the output is closed; neither is an error.
    pub fn serve(mut self, mut reader: impl BufRead, mut writer: impl Write) {
        let (bytes_max, mut line, mut written) = (self.config.max_request_bytes, vec![], Ok(()));
        // Dropped before the first line only.
        let mut byte_order_mark: &[u8] = b"\xef\xbb\xbf";
        while written.is_ok() {
            // Freed whole after megabytes, it would teach glibc's allocator to keep as much.
            line.clear();
            line.shrink_to(limits::LINE_BYTES_KEPT);
            // An error is the end: no later byte could be trusted to begin a line.
            let _ = reader.by_ref().take(bytes_max + 1).read_until(b'\n', &mut line);
            let text = line.strip_prefix(std::mem::take(&mut byte_order_mark)).unwrap_or(&line);
            written = if line.is_empty() {
                return drop(self.finish(&mut writer));
            } else if line.ends_with(b"\n") || line.len() as u64 <= bytes_max {
                self.answer(text, &mut writer)
            } else {
                let _ = reader.skip_until(b'\n');
                let text = format!("a request line has at most {bytes_max} bytes");
                send(reply(&None, "error", &fault(INVALID_REQUEST, text)), &mut writer)
            };
        }
    }

    /// Answers one line, with or without its newline. What is written, if anything, is one line in
    /// one call of `write_all`, flushed. The length of lines is bounded by [`Server::serve`], not
    /// here. Fails only if `out` does.
    pub fn answer(&mut self, line: &[u8], out: &mut impl Write) -> io::Result<()> {
        if line.iter().all(|byte| b" \t\r\n".contains(byte)) {
            return Ok(());
        }
        let parsed = parse(line.strip_suffix(b"\n").unwrap_or(line));
        self.unparsable_in_a_row = if parsed.is_ok() { 0 } else { self.unparsable_in_a_row + 1 };
        let reply = match parsed {
            Ok(Value::Array(values)) => self.receive_batch(values),
            Ok(value) => self.receive(value, limits::REPLY_BYTES_MAX),
            Err(_) if limits::UNPARSABLE_LINES_MAX < self.unparsable_in_a_row => None,
            Err(error) => Some(reply(&None, "error", &error)),
        };
        reply.map_or(Ok(()), |reply| send(reply, out))
    }

    /// Ends every open subscription, as is due when the input ends. Fails only if `out` does.
    pub fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        std::mem::take(&mut self.subscriptions).iter().try_for_each(|id| {
            send(result(id, MODERN, json!({"_meta": {SUBSCRIPTION_ID: id}})), out)
        })
    }

    /// Acts on a message; `room` bounds the reply to `tools/call`, in bytes.
    fn receive(&mut self, value: Value, room: usize) -> Option<Vec<u8>> {
        let request = match message(value) {
            Ok(request) => request?,
            Err(reply) => return Some(reply),
        };
        if request.id.is_some() {
            return Some(self.respond(&request, room));
        }
        if request.method == "notifications/cancelled" {
            let id = request.params.get("requestId");
            self.subscriptions.retain(|open| open.as_ref() != id);
        }
        None
    }

    /// Answers a batch by one line, of which every message gets an equal share.
    fn receive_batch(&mut self, values: Vec<Value>) -> Option<Vec<u8>> {
        let refusal = |text| Some(reply(&None, "error", &fault(INVALID_REQUEST, text)));
        if self.legacy != WITH_ANNOTATIONS {
            return refusal("batches exist in 2025-03-26 only, after initialize".into());
        }
        if values.is_empty() || limits::BATCH_MESSAGES_MAX < values.len() {
            return refusal(format!("a batch holds 1 to {} messages", limits::BATCH_MESSAGES_MAX));
        }
        let room = limits::REPLY_BYTES_MAX / values.len() - limits::CALL_OVERHEAD_BYTES;
        let mut line = Vec::new();
        for reply in values.into_iter().filter_map(|value| self.receive(value, room)) {
            line.push(if line.is_empty() { b'[' } else { b',' });
            line.extend_from_slice(&reply);
        }
        let any = !line.is_empty();
        line.push(b']');
        if limits::REPLY_BYTES_MAX < line.len() {
            return refusal("the replies to this batch are too long: send less at once".into());
        }
        any.then_some(line)
    }

    /// Answers a request, come what may: a panic is our fault and ends neither the process nor the
    /// wait of the client.
    fn respond(&mut self, request: &Request, room: usize) -> Vec<u8> {
        let version = if claims_modern(request) { MODERN } else { self.legacy };
        let answer = catch_unwind(AssertUnwindSafe(|| self.dispatch(request, version, room)));
        let answer = answer.unwrap_or_else(|_| {
            // The hook has said what and where.
            let panic = ToolError::new(Code::InternalError, "the panic above");
            match request.method == "tools/call" {
                true => Ok(self.call_failed(request, version, panic)),
                false => Err(fault(INTERNAL_ERROR, self.incident(&panic.sentence))),
            }
        });
        answer.unwrap_or_else(|error| reply(&request.id, "error", &error))
    }

    /// Numbers a fault of this program: the sentence for the client, the detail for the operator.
    fn incident(&mut self, detail: &str) -> String {
        self.incidents += 1;
        let text = format!("incident {}", self.incidents);
        // Not `eprintln`, which panics when stderr is closed.
        let _ = writeln!(io::stderr(), "readonly-mcp: {text}: {}", quoted(detail));
        format!("a fault of this server, {text}; its stderr says more")
    }

    fn dispatch(&mut self, request: &Request, version: &str, room: usize) -> Reply {
        let method = request.method.as_str();
        let is_batch = room < limits::REPLY_BYTES_MAX; // as a share always is
        if is_batch && ["initialize", "subscriptions/listen"].contains(&method) {
            return Err(fault(INVALID_REQUEST, format!("{method} cannot be part of a batch")));
        }
        if version == MODERN {
            check_metadata(request)?;
        }
        match (method, version) {
            ("server/discover", _) => {
                let reply = json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}},
                    "instructions": instructions::text(&self.config, &self.tree),
                    "ttlMs": CACHE_MS, "cacheScope": "private"});
                Ok(result(&request.id, MODERN, reply))
            }
            ("subscriptions/listen", _) => self.listen(request),
            ("tools/list" | "tools/call", "") => {
                let keys = format!("{PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}");
                let text = format!("initialize first, or send {keys} in params._meta");
                Err(fault(INVALID_PARAMS, text))
            }
            ("tools/list", _) => list_tools(request, version),
            ("tools/call", _) => self.call_tool(request, version, room),
            ("initialize", _) if version != MODERN => self.initialize(request),
            ("ping", _) if version != MODERN => Ok(result(&request.id, "", json!({}))),
            _ => Err(fault(METHOD_NOT_FOUND, format!("no method {} here", quoted(method)))),
        }
    }

    fn initialize(&mut self, request: &Request) -> Reply {
        let wish = request.params["protocolVersion"].as_str();
        let wish = wish.ok_or_else(|| fault(INVALID_PARAMS, "protocolVersion must be a string"))?;
        self.legacy = LEGACY.into_iter().find(|known| *known == wish).unwrap_or(LEGACY[0]);
        let reply = json!({"protocolVersion": self.legacy, "capabilities": {"tools": {}},
            "instructions": instructions::text(&self.config, &self.tree),
            "serverInfo": server_info(self.legacy)});
        Ok(result(&request.id, self.legacy, reply))
    }

    /// Acknowledges a subscription, of whose wishes none is served, and leaves it open.
    fn listen(&mut self, request: &Request) -> Reply {
        if !request.params["notifications"].is_object() {
            return Err(fault(INVALID_PARAMS, "notifications must be an object"));
        }
        let line = to_json(&json!({"jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": {SUBSCRIPTION_ID: request.id}, "notifications": {}}}));
        // Each id is kept until its end, so that neither their number nor their length is free.
        if limits::SUBSCRIPTION_BYTES_MAX < line.len() {
            return Err(fault(INVALID_PARAMS, "the id of a subscription must be short"));
        }
        let open = &mut self.subscriptions;
        open.retain(|id| *id != request.id);
        if limits::SUBSCRIPTIONS_MAX <= open.len() {
            let text = format!("{} subscriptions are open: end one first", open.len());
            return Err(fault(INTERNAL_ERROR, text));
        }
        open.push(request.id.clone());
        Ok(line)
    }

    fn call_tool(&mut self, request: &Request, version: &str, room: usize) -> Reply {
        let name = request.params["name"].as_str();
        let name = name.ok_or_else(|| fault(INVALID_PARAMS, "name must be a string"))?;
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
            let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            let text = format!("unknown tool {}: name one of {}", quoted(name), names.join(", "));
            return Err(fault(INVALID_PARAMS, text));
        };
        let none = Map::new();
        let arguments = match &request.params["arguments"] {
            Value::Object(arguments) => arguments,
            Value::Null => &none,
            _ => return Err(fault(INVALID_PARAMS, "arguments must be an object")),
        };
        let room = room.saturating_sub(to_json(&request.id).len());
        let answer = if room < limits::CALL_BYTES_MIN {
            let why = "the reply line has no room for this: send the calls singly, with short ids";
            Err(ToolError::new(Code::LimitExceeded, why))
        } else {
            (tool.run)(&self.call(room), arguments)
        };
        Ok(match answer {
            Ok(page) => call_succeeded(request, version, page),
            Err(error) => self.call_failed(request, version, error),
        })
    }

    /// The reply of a call that failed: the model reads why.
    fn call_failed(&mut self, request: &Request, version: &str, mut error: ToolError) -> Vec<u8> {
        if error.code == Code::InternalError {
            error.sentence = self.incident(&error.sentence);
        }
        let content = json!([{"type": "text", "text": error.to_string()}]);
        result(&request.id, version, json!({"content": content, "isError": true}))
    }
}

/// Writes a reply and its newline as one piece.
fn send(mut reply: Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    reply.push(b'\n');
    out.write_all(&reply)?;
    out.flush()
}

/// Whether a request belongs to the modern era: by its metadata, or by a method of that era only.
fn claims_modern(request: &Request) -> bool {
    let keys = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
    keys.iter().any(|key| request.params["_meta"].get(key).is_some())
        || ["server/discover", "subscriptions/listen"].contains(&request.method.as_str())
}

/// Checks the metadata of a modern request. The version comes before all else, and before the
/// method: a later client must learn "wrong version", not "no such method".
fn check_metadata(request: &Request) -> Result<(), Value> {
    let meta = &request.params["_meta"];
    let version = &meta[PROTOCOL_VERSION];
    if version.is_string() && version != MODERN {
        return Err(json!({"code": -32_022, "message": "unsupported protocol version",
            "data": {"supported": [MODERN], "requested": version}}));
    }
    let is_level = |level: &Value| LOG_LEVELS.split(' ').any(|known| level == known);
    let demands = [
        (version.is_string(), PROTOCOL_VERSION, "a string"),
        (meta[CLIENT_CAPABILITIES].is_object(), CLIENT_CAPABILITIES, "an object"),
        (meta.get(LOG_LEVEL).is_none_or(is_level), LOG_LEVEL, "a level name"),
    ];
    demands.into_iter().try_for_each(|(holds, key, what)| match holds {
        true => Ok(()),
        false => Err(fault(INVALID_PARAMS, format!("params._meta[{key:?}] must be {what}"))),
    })
}

/// Who we are.
fn server_info(version: &str) -> Value {
    let mut info = json!({"name": "readonly-mcp", "version": env!("CARGO_PKG_VERSION")});
    if WITH_TITLES <= version {
        info["title"] = "Read-only files".into();
    }
    info
}

/// A reply with a result, and with what the modern era wants in each of them.
fn result(id: &Option<Value>, version: &str, mut result: Value) -> Vec<u8> {
    if version == MODERN {
        result["resultType"] = "complete".into();
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info(MODERN);
    }
    reply(id, "result", &result)
}

/// All tools on one page; no cursor was ever given out, so none is right.
fn list_tools(request: &Request, version: &str) -> Reply {
    if !request.params["cursor"].is_null() {
        return Err(fault(INVALID_PARAMS, "tools/list is one page: leave cursor out"));
    }
    let listing = match version {
        MODERN => json!({"tools": [], "ttlMs": CACHE_MS, "cacheScope": "private"}),
        _ => json!({"tools": []}),
    };
    let tools: Vec<_> = TOOLS.iter().map(|tool| described(tool, version)).collect();
    let mut line = result(&request.id, version, listing);
    let place = memchr::memrchr(b'[', &line).map_or(0, |at| at + 1);
    line.splice(place..place, tools.join(&b','));
    Ok(line)
}

/// A tool, with its members in an order that is for models to read.
fn described(tool: &Tool, version: &str) -> Vec<u8> {
    let since = |first, value: Value| to_json(&(first <= version).then_some(value));
    let required: Vec<_> = tool.parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
    let schema = object([
        ("type", to_json("object")),
        ("properties", object(tool.parameters.iter().map(|p| (p.name, p.schema())))),
        ("required", to_json(&(!required.is_empty()).then_some(required))),
    ]);
    // Clients that ignore `readOnlyHint` may still heed the others.
    let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
        "openWorldHint": false});
    object([
        ("name", to_json(tool.name)),
        ("title", since(WITH_TITLES, tool.title.into())),
        ("description", to_json(tool.description)),
        ("inputSchema", schema),
        ("annotations", since(WITH_ANNOTATIONS, hints)),
    ])
}

/// The reply of a call that worked, built around the payload, which is escaped already.
fn call_succeeded(request: &Request, version: &str, page: Page) -> Vec<u8> {
    let (header, mut line, machine) = page.finish();
    let mut reply = json!({"content": [{"type": "text", "text": header + "\n"}], "isError": false});
    reply["_meta"]["readonly-mcp/result"] = machine;
    let around = result(&request.id, version, reply);
    // Nothing after the newline of the header has to be escaped: its backslash is the last.
    let place = memchr::memrchr(b'\\', &around).map_or(0, |at| at + 2);
    let (before, after) = around.split_at(place);
    line.extend_from_slice(after);
    line.splice(..0, before.iter().copied());
    line
}
