//! What happened, over all planes.

use super::Row;
use crate::log::{Entry, Log};

/// The log's entries, oldest first.
pub fn event_rows(log: &Log) -> Vec<Row> {
    log.entries().map(row).collect()
}

fn row(entry: &Entry) -> Row {
    Row {
        key: entry.subject.as_ref().map(|subject| subject.key.clone()),
        seq: Some(entry.seq),
        title: entry.subject.as_ref().map_or_else(|| entry.title.clone(), ToString::to_string),
        word: entry.word.clone(),
        reason: entry.detail.split(':').next().unwrap_or_default().to_owned(),
        detail: entry.detail.clone(),
        since: Some(entry.at),
        role: entry.role,
        ..Row::default()
    }
}
