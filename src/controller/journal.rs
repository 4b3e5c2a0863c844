//! The journal in the cluster: a ConfigMap with the state of the run and its newest events (contracts 22).
//!
//! The state is written a moment after something happened, many events at once. What a kill keeps from being written costs a write
//! again, never an object: applying is idempotent, and only what the journal proves is skipped.
//!
//! Invariant: it stays below what an API server takes. What is too much is left out in the order of its worth: the events, the plan, the
//! objects' health. What is proven to be applied is never left out.

mod recorded;

use std::{
    collections::{BTreeMap, VecDeque},
    io::{Read, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_bootstrap::rights;
use plinth_engine::{
    naming::{self, keys},
    ports::{Applier, Apply, Clock, ReadError, Reader, WriteError},
};
use plinth_run::{Event, Journal, Log, RunState, journal::Replay, ports::JournalError};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use recorded::{News, Recorded};

/// Most bytes of the ConfigMap's data, as it is sent.
pub const MOST: usize = 900 << 10;
/// Most bytes of the events.
const MOST_EVENTS: usize = 100 << 10;
/// Most bytes of a state that is read, before it is compressed: a ConfigMap of small size may say anything.
const MOST_STATE: u64 = 64 << 20;
/// How long events gather before they are written.
const GATHER: Duration = Duration::from_millis(300);
/// How long a write that failed waits.
const AGAIN: Duration = Duration::from_secs(2);
/// Field manager.
const MANAGER: &str = "plinth.dev/journal";
const STATE: &str = "state.json.gz";
const EVENTS: &str = "events.jsonl";

/// Where it is.
pub fn key() -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: Some(rights::NAMESPACE.to_owned()),
        name: rights::JOURNAL.to_owned(),
    }
}

/// The state that the cluster has; `None` where it has none, or none that can be read.
pub async fn read(reader: &dyn Reader) -> Result<Option<RunState>, ReadError> {
    let Some(object) = reader.get(&key()).await? else { return Ok(None) };
    let state = state_of(&object);
    if state.is_none() && object.0.contains_key("binaryData") {
        tracing::warn!(journal = %key(), "the journal cannot be read: everything is applied again");
    }
    Ok(state)
}

fn state_of(object: &Object) -> Option<RunState> {
    let packed = STANDARD.decode(object.at(&["binaryData", STATE])?.as_str()?).ok()?;
    let mut text = Vec::new();
    GzDecoder::new(packed.as_slice()).take(MOST_STATE).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes the state with these events.
pub async fn write(applier: &dyn Applier, state: &RunState, events: &str) -> Result<(), WriteError> {
    let key = key();
    let Some(object) = object(&key, state, events) else {
        let message = format!("the state of {} applied objects takes more than {MOST} bytes", state.applied.len());
        return Err(WriteError::Invalid { key, message });
    };
    let apply = Apply { key, object, manager: MANAGER.to_owned(), force: true, subresource: None };
    applier.apply(&apply).await.map(drop)
}

/// The ConfigMap, with as much as fits.
fn object(key: &ObjectKey, state: &RunState, events: &str) -> Option<Object> {
    let without_plan = || RunState { plan: None, ..state.clone() };
    let proofs_only = || RunState { subjects: BTreeMap::default(), ..without_plan() };
    let fits = |packed: &String| packed.len() + MOST_EVENTS <= MOST;
    let whole = Some(packed(state)).filter(fits);
    let packed =
        whole.or_else(|| Some(packed(&without_plan())).filter(fits)).or_else(|| Some(packed(&proofs_only())).filter(fits))?;
    let value = json!({
        "apiVersion": key.gvk.api_version(),
        "kind": key.gvk.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": {
            keys::PLATFORM: naming::label_value(&state.platform), keys::PART: keys::PART_CONTROLLER}},
        "binaryData": {STATE: packed},
        "data": {EVENTS: events},
    });
    Object::from_value(value)
}

fn packed(state: &RunState) -> String {
    let text = serde_json::to_vec(state).expect("a state is made of strings, numbers and lists");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector cannot fail.
    let packed = encoder.write_all(&text).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(packed)
}

/// The newest events of a run in this process, for the ConfigMap.
#[derive(Debug, Default)]
pub struct ClusterJournal {
    recent: Mutex<Recent>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Recent {
    lines: VecDeque<String>,
    bytes: usize,
    /// All that there ever were.
    count: u64,
}

impl ClusterJournal {
    /// Writes the state whenever something happened that is not written yet, until `shutdown` and then as well.
    pub async fn keep(&self, log: &Log, applier: Arc<dyn Applier>, clock: &dyn Clock, shutdown: &CancellationToken) {
        let mut kept = 0;
        loop {
            let ends = tokio::select! {
                biased;
                () = shutdown.cancelled() => true,
                () = self.changed.notified() => false,
            };
            if !ends {
                clock.sleep(GATHER).await;
            }
            // Events that came while others gathered went along with those.
            let count = self.lock().count;
            if count > kept {
                match write(&*applier, &log.state(), &self.text()).await {
                    Ok(()) => kept = count,
                    Err(error) if !ends => {
                        tracing::warn!(%error, "the journal could not be written and will be again");
                        self.changed.notify_one();
                        clock.sleep(AGAIN).await;
                    }
                    Err(_) => {}
                }
            }
            if ends {
                return;
            }
        }
    }

    fn text(&self) -> String {
        self.lock().lines.iter().map(String::as_str).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        // Each line is whole in itself, so a panic elsewhere leaves them usable.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for ClusterJournal {
    fn append(&self, event: &Event) -> Result<(), JournalError> {
        let line = plinth_run::journal::encode(event)?;
        {
            let mut recent = self.lock();
            recent.bytes += line.len();
            recent.count += 1;
            recent.lines.push_back(line);
            while recent.bytes > MOST_EVENTS {
                let Some(old) = recent.lines.pop_front() else { break };
                recent.bytes -= old.len();
            }
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Nothing: the state that the cluster has is where the log begins.
    fn load(&self) -> Result<Replay, JournalError> {
        Ok(Replay::default())
    }
}

#[cfg(test)]
mod tests {
    use plinth_run::state::Applied;

    use super::*;

    fn state(objects: usize) -> RunState {
        let mut state = RunState { platform: "p".into(), ..RunState::default() };
        for index in 0..objects {
            // Digests do not compress, as in life.
            let bytes: Vec<u8> = (0..4_u64).flat_map(|part| splitmix(index as u64 * 4 + part).to_be_bytes()).collect();
            let digest = crate::hex(&bytes);
            let applied =
                Applied { digest: digest.clone(), generation: 1, result: Some(digest), uid: Some(format!("uid-{index}")) };
            state.applied.insert(ObjectKey { name: format!("object-{index}"), ..key() }, applied);
        }
        state
    }

    fn splitmix(seed: u64) -> u64 {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 27)
    }

    #[test]
    fn what_is_proven_comes_back() {
        let state = state(3);
        let object = object(&key(), &state, "{}\n").unwrap();
        assert_eq!(state_of(&object), Some(state));
        assert_eq!(object.at(&["data", EVENTS]).unwrap(), "{}\n");
        assert_eq!(state_of(&Object::default()), None);
    }

    #[test]
    fn it_stays_below_its_bound_and_never_leaves_out_what_is_proven() {
        let many = state(5_000);
        let object = object(&key(), &many, "").unwrap();
        assert!(serde_json::to_vec(&object.0).unwrap().len() < MOST);
        assert_eq!(state_of(&object).unwrap().applied, many.applied);
        assert!(super::object(&key(), &state(20_000), "").is_none(), "what does not fit is an error, not a loss");
    }
}
