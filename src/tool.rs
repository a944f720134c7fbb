//! What a tool is, what it may use, and what it answers. A tool never sees a host path, and reads
//! JSON only through its one declaration of arguments.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::arguments::Parameter;
use crate::config::Config;
use crate::cursor::Seal;
use crate::disk::Kind;
use crate::error::{Code, Result};
use crate::limits::BINARY_CHECK_BYTES;
use crate::lines::{File, binary_kind};
use crate::page::Page;
use crate::path::RelPath;
use crate::policy::Withheld;
use crate::tree::{Place, Tree, about, tool_error};
use crate::walk::Walk;

/// One tool as one value: what the client is told, what is checked, and what runs.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) run: fn(&Call<'_>, &Map<String, Value>) -> Result<Page>,
}

/// What a tool may use during one call.
pub(crate) struct Call<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) seal: &'a Seal,
    pub(crate) config: &'a Config,
    pub(crate) reply_bytes_max: usize, // of the escaped text of the result
}

impl Call<'_> {
    /// When a walk, search or line count that begins now must answer with what it has.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.config.time_budget_ms)
    }

    /// What a path names, if it is served, a link at its end followed or not. A directory that no
    /// include covers is served when a look-ahead finds something served in it.
    pub(crate) fn place(&self, spelled: &RelPath, follow: bool) -> Result<Place> {
        let place = self.tree.resolve(spelled, follow)?;
        let finds_served = || Walk::new(self, spelled, place.clone()).ok()?.finds_served();
        if place.is_included() || place.kind() == Kind::Dir && finds_served() == Some(true) {
            return Ok(place);
        }
        Err(Withheld::NotIncluded.refusal(spelled))
    }

    /// A walk below what a path names, or the error that it is no directory.
    pub(crate) fn walk(&self, spelled: &RelPath) -> Result<Walk<'_>> {
        let place = self.place(spelled, true)?;
        let kind = place.kind();
        if kind == Kind::Dir {
            return Walk::new(self, spelled, place);
        }
        let read = if kind == Kind::File { "; read_file reads it" } else { "" };
        let why = format!("is a {}, not a directory{read}", kind.word());
        Err(about(spelled, Code::NotADirectory, why))
    }

    /// A file to read, unless its beginning looks binary.
    pub(crate) fn text_file(&self, spelled: RelPath, lossy: bool) -> Result<File> {
        let mut file = self.open(self.place(&spelled, true)?, spelled)?;
        file.lossy = lossy;
        let mut start = [0; BINARY_CHECK_BYTES];
        let count = file.ok(file.content.read_at(&mut start, 0))?;
        let Some(kind) = binary_kind(&start[..count]) else { return Ok(file) };
        let why = format!("is binary (type: {kind}, {} bytes), not UTF-8 text", file.facts.size);
        Err(about(&file.path, Code::NotText, why))
    }

    /// A place as a file to read, whatever its text; what is no file or too large is not opened.
    pub(crate) fn open(&self, place: Place, path: RelPath) -> Result<File> {
        let kind = place.kind();
        let Some(pin) = place.leaf.filter(|_| kind == Kind::File) else {
            let how =
                if kind == Kind::Dir { "; list_directory shows it" } else { ", never opened" };
            return Err(about(&path, Code::NotAFile, format!("is a {}{how}", kind.word())));
        };
        let (size, max) = (pin.facts.size, self.config.max_file_bytes.unwrap_or(u64::MAX));
        if max < size {
            let why = format!("has {size} bytes; the operator's limit is {max}");
            return Err(about(&path, Code::TooLarge, why));
        }
        let content = pin.open().map_err(|fault| tool_error(fault, &path))?;
        Ok(File { path, content, facts: pin.facts, lossy: false })
    }
}
