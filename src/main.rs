//! The program: command line, one line on stderr, the loop. It never writes to stdout but through
//! the server, and never reads the environment.
#![forbid(unsafe_code)]

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use readonly_mcp::cli::{self, Command};
use readonly_mcp::{ConfigError, Server};

fn main() -> ExitCode {
    // One line for a fault of ours; the server adds its incident number.
    std::panic::set_hook(Box::new(|info| say(&format!("{info}").replace('\n', " "))));
    cli::parse(std::env::args_os().skip(1)).and_then(run).unwrap_or_else(|error| {
        say(&error.to_string());
        ExitCode::from(2)
    })
}

fn run(command: Command) -> Result<ExitCode, ConfigError> {
    match command {
        // A closed stdout is no fault: nobody wants the text any more.
        Command::Print(text) => drop(io::stdout().write_all(text.as_bytes())),
        Command::Check(config) => {
            let (text, is_clear) = Server::new(config)?.check(io::stderr().is_terminal())?;
            // A report that nobody could read is no clearance.
            let is_clear = io::stdout().write_all(text.as_bytes()).is_ok() && is_clear;
            return Ok(if is_clear { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Serve(config) => {
            let server = Server::new(config)?;
            say(&server.summary());
            if io::stdin().is_terminal() {
                say("waiting for an MCP client on stdin; see --help for its configuration");
            }
            server.serve(io::stdin().lock(), io::stdout().lock());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One line on stderr; stderr may be closed.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "readonly-mcp: {line}");
}
