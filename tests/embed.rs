//! Embeds the server in one process: a request goes in as bytes, the answer comes out as bytes. No
//! child process, no thread, no socket.
//!
//!     cargo run --example embed

#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::error::Error;
use std::io::Cursor;
use std::path::Path;

use readonly_mcp::{Config, Server};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tree");
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "read_file",
            "arguments": {"path": "basket.txt"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });

    // What the command line would have built; every option is a public field.
    let config = Config { max_result_chars: 9_500, ..Config::new(folder) };
    let server = Server::new(config)?;
    let (input, mut output) = (request.to_string(), Vec::new());
    // Serves until the input ends. Any `BufRead` and `Write` will do.
    server.serve(Cursor::new(input.as_bytes()), &mut output);

    let reply: Value = serde_json::from_slice(&output)?;
    let text = &reply["result"]["content"][0]["text"];
    println!("{}", text.as_str().ok_or("no text in the answer")?);
    Ok(())
}
