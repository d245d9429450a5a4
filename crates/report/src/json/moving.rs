//! `move --json`.

use super::Object;
use mover::{Moved, Planned, Request};
use serde_json::Value;

fn target(request: &Request) -> Value {
    Object::default()
        .with("path", request.to.path.display().to_string())
        .with("fs", request.to.fs.as_str())
        .maybe("compress", request.to.compress.as_deref())
        .build()
}

/// What would be done.
pub fn move_planned(planned: &Planned, request: &Request) -> Value {
    let part = |(what, start, len): &(String, basics::Bytes, basics::Bytes)| {
        Object::default().with("for", what.as_str()).with("start_B", start.0).with("size_B", len.0).build()
    };
    Object::default()
        .with("schema", "tiermark.move/1")
        .with("dry_run", true)
        .with("from", planned.from.as_str())
        .with("to", target(request))
        .with("used_B", planned.used.0)
        .with("partitions", planned.parts.iter().map(part).collect::<Value>())
        .with("without", planned.without.iter().map(|path| path.display().to_string()).collect::<Value>())
        .maybe("command_line", planned.command_line.as_deref().map(str::trim_end))
        .build()
}

/// What was done.
pub fn moved(moved: &Moved, request: &Request) -> Value {
    let part = |(what, partuuid, len): &(String, String, basics::Bytes)| {
        Object::default().with("for", what.as_str()).with("partuuid", partuuid.as_str()).with("size_B", len.0).build()
    };
    let texts = |texts: &[String]| texts.iter().map(String::as_str).collect::<Value>();
    Object::default()
        .with("schema", "tiermark.move/1")
        .with("dry_run", false)
        .with("to", target(request))
        .with("files", moved.files)
        .with("written_B", moved.bytes)
        .with("files_there", moved.there)
        .with("root_uuid", moved.root_uuid.as_str())
        .with("partitions", moved.parts.iter().map(part).collect::<Value>())
        .maybe("command_line", moved.command_line.as_deref().map(str::trim_end))
        .maybe("boot", moved.boot.as_deref())
        .with("checked", texts(&moved.checked))
        .with("notes", texts(&moved.notes))
        .build()
}

/// What came after a move.
pub fn moved_back(what: &str, at: &str) -> Value {
    Object::default().with("schema", "tiermark.move/1").with("done", what).with("at", at).build()
}
