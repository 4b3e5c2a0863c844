//! The planes of a run: what roles its clusters have, and where one role is that of several clusters.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use plinth_engine::graph::Plane;
use plinth_run::{RunState, Subject};

/// The planes that a run has objects on: provider, consumer and host first, then clusters that nobody gave a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planes(Vec<(String, bool)>);

impl Planes {
    /// Looks at every object once. They come in the order of their keys, which begin with the cluster.
    pub fn of(run: &RunState) -> Self {
        let mut clusters: BTreeMap<(Reverse<Option<Plane>>, &str), BTreeSet<&str>> = BTreeMap::new();
        let mut last = None;
        for subject in run.subjects.values().map(|known| &known.subject) {
            let (plane, cluster) = (subject.plane, subject.key.cluster.0.as_str());
            if !cluster.is_empty() && last != Some((plane, cluster)) {
                last = Some((plane, cluster));
                clusters.entry((Reverse(plane), subject.plane())).or_default().insert(cluster);
            }
        }
        Self(clusters.into_iter().map(|((_, name), clusters)| (name.to_owned(), clusters.len() > 1)).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is known of any cluster.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The plane after this one: all of them (`None`), then each one.
    pub fn after(&self, now: Option<&str>) -> Option<String> {
        let next = match now {
            None => 0,
            Some(now) => self.0.iter().position(|(name, _)| name == now)? + 1,
        };
        self.0.get(next).map(|(name, _)| name.clone())
    }

    /// What an object is called beside the name of its plane: without its cluster, unless others have the same role.
    pub fn title(&self, subject: &Subject) -> String {
        let named = subject.key.named();
        if self.is_shared(subject.plane()) { format!("{named} @{}", subject.key.cluster) } else { named }
    }

    /// Where an object is: its plane, and the cluster where others have the same role.
    pub fn place(&self, subject: &Subject) -> String {
        if self.is_shared(subject.plane()) { subject.place() } else { subject.plane().to_owned() }
    }

    fn is_shared(&self, plane: &str) -> bool {
        self.0.iter().any(|(name, shared)| *shared && name == plane)
    }
}

#[cfg(test)]
mod tests {
    use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
    use plinth_run::{Event, EventKind, Health, RunId};

    use super::*;

    fn run(clusters: &[(&str, Option<Plane>)]) -> RunState {
        let event = |(seq, (cluster, plane)): (u64, &(&str, Option<Plane>))| {
            let key = ObjectKey {
                cluster: ClusterKey((*cluster).to_owned()),
                gvk: GroupVersionKind::default(),
                namespace: None,
                name: "x".to_owned(),
            };
            let subject = Subject { plane: *plane, ..Subject::root(key) };
            let kind = EventKind::HealthChanged {
                subject,
                health: Health::Current,
                reason: String::new(),
                message: String::new(),
                causes: Vec::new(),
            };
            Event { v: 1, run: RunId("r".to_owned()), seq, at: jiff::Timestamp::UNIX_EPOCH, kind }
        };
        RunState::replay(&(1..).zip(clusters).map(event).collect::<Vec<_>>())
    }

    #[test]
    fn roles_come_in_one_order_and_clusters_without_one_last() {
        let (host, consumer, provider) = (Some(Plane::Host), Some(Plane::Consumer), Some(Plane::Provider));
        let planes = Planes::of(&run(&[("z", provider), ("a", None), ("host", host), ("c2", consumer), ("c1", consumer)]));
        let mut walked = Vec::new();
        let mut now = None;
        while let Some(next) = planes.after(now.as_deref()) {
            walked.push(next.clone());
            now = Some(next);
        }
        assert_eq!(walked, ["provider", "consumer", "host", "a"]);
        assert_eq!(planes.after(Some("gone")), None, "from a plane that went away all are shown again");
    }
}
