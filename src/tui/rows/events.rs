//! What happened, over all planes.

use super::Row;
use crate::{
    log::{Entry, Log},
    planes::Planes,
};

/// The log's entries, oldest first.
pub fn event_rows(log: &Log, planes: &Planes) -> Vec<Row> {
    log.entries().map(|entry| row(entry, planes)).collect()
}

fn row(entry: &Entry, planes: &Planes) -> Row {
    Row {
        key: entry.subject.as_ref().map(|subject| subject.key.clone()),
        plane: entry.subject.as_ref().and_then(|subject| subject.plane),
        seq: Some(entry.seq),
        title: entry.subject.as_ref().map_or_else(|| entry.title.clone(), |subject| planes.title(subject)),
        word: entry.word.clone(),
        reason: entry.detail.split(':').next().unwrap_or_default().to_owned(),
        detail: entry.detail.clone(),
        since: Some(entry.at),
        role: entry.role,
        ..Row::default()
    }
}
