//! The table of tools, in the order in which clients see them. A tool that is not here does not
//! exist: listing and calling both read this table.

mod get_file_info;
mod list_directory;
pub(crate) mod list_roots;
mod read_file;
mod read_file_range;
mod read_multiple_files;
mod search_files;
mod search_text;
mod tail_file;

use crate::tool::Tool;

pub(crate) const TOOLS: &[Tool] = &[
    list_roots::TOOL,
    list_directory::TOOL,
    search_files::TOOL,
    search_text::TOOL,
    read_file::TOOL,
    read_file_range::TOOL,
    tail_file::TOOL,
    read_multiple_files::TOOL,
    get_file_info::TOOL,
];
