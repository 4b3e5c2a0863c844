//! Single grants, gathered and put together to few rules.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::rbac::{Lift, PolicyRule, Rights};

/// Where a grant counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// On objects of the cluster, and in every namespace.
    Cluster,
    /// In one namespace.
    Namespace(String),
}

/// A resource in a scope.
type At = (Scope, String, String);
/// Verbs by object; those for all objects under `None`.
type Verbs = BTreeMap<Option<String>, BTreeSet<String>>;

/// What was asked for so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Grants {
    resources: BTreeMap<At, Verbs>,
    paths: BTreeMap<String, BTreeSet<String>>,
    lifts: BTreeSet<Lift>,
    open: BTreeSet<String>,
}

impl Grants {
    /// Adds verbs on one object, or on all where no name is given.
    pub(super) fn add(&mut self, scope: &Scope, group: &str, resource: &str, name: Option<&str>, verbs: &[&str]) {
        let at = (scope.clone(), group.to_owned(), resource.to_owned());
        let known = self.resources.entry(at).or_default().entry(name.map(str::to_owned)).or_default();
        known.extend(verbs.iter().map(|verb| (*verb).to_owned()));
    }

    /// Adds a rule as Kubernetes writes it.
    pub(super) fn add_rule(&mut self, scope: &Scope, rule: &PolicyRule) {
        let verbs: Vec<&str> = rule.verbs.iter().map(String::as_str).collect();
        let names: Vec<Option<&str>> = rule.resource_names.iter().map(|name| Some(name.as_str())).collect();
        let names = if names.is_empty() { vec![None] } else { names };
        for group in &rule.api_groups {
            for resource in &rule.resources {
                names.iter().for_each(|name| self.add(scope, group, resource, *name, &verbs));
            }
        }
        for path in &rule.non_resource_urls {
            self.paths.entry(path.clone()).or_default().extend(rule.verbs.iter().cloned());
        }
    }

    /// Adds a role that may be handed on.
    pub(super) fn lift(&mut self, lift: Lift) {
        self.lifts.insert(lift);
    }

    /// Adds a need that no rule meets.
    pub(super) fn open(&mut self, sentence: String) {
        self.open.insert(sentence);
    }

    /// The namespaces that anything is granted in.
    pub(super) fn namespaces(&self) -> BTreeSet<String> {
        let of_scope = |(scope, ..): &At| match scope {
            Scope::Namespace(name) => Some(name.clone()),
            Scope::Cluster => None,
        };
        self.resources.keys().filter_map(of_scope).collect()
    }

    /// Adds all of another one.
    pub(super) fn join(&mut self, other: Self) {
        for (at, verbs) in other.resources {
            let known = self.resources.entry(at).or_default();
            verbs.into_iter().for_each(|(name, verbs)| known.entry(name).or_default().extend(verbs));
        }
        other.paths.into_iter().for_each(|(path, verbs)| self.paths.entry(path).or_default().extend(verbs));
        self.lifts.extend(other.lifts);
        self.open.extend(other.open);
    }

    /// Takes out what others say already, and the lifts to roles that may be bound already.
    pub(super) fn without(mut self, held: &Self) -> Self {
        for ((scope, group, resource), names) in &mut self.resources {
            let known = |scope: &Scope| held.resources.get(&(scope.clone(), group.clone(), resource.clone()));
            let known: Vec<&Verbs> = [known(scope), known(&Scope::Cluster)].into_iter().flatten().collect();
            for (name, verbs) in names {
                let says = |known: &&&Verbs, verb: &String| {
                    [name, &None].into_iter().any(|name| known.get(name).is_some_and(|verbs| verbs.contains(verb)))
                };
                verbs.retain(|verb| !known.iter().any(|known| says(&known, verb)));
            }
        }
        for (path, verbs) in &mut self.paths {
            verbs.retain(|verb| !held.paths.get(path).is_some_and(|known| known.contains(verb)));
        }
        self.paths.retain(|_, verbs| !verbs.is_empty());
        let bound: BTreeSet<&String> = self
            .resources
            .values()
            .flatten()
            .filter(|(_, verbs)| verbs.contains("bind"))
            .filter_map(|(name, _)| name.as_ref())
            .collect();
        self.lifts.retain(|lift| lift.role.split_once(' ').is_some_and(|(_, name)| bound.iter().any(|bound| *bound == name)));
        self
    }

    /// Lets grants in namespaces that do not qualify count everywhere.
    pub(super) fn spread(&mut self, stays: impl Fn(&str) -> bool) {
        for ((scope, group, resource), verbs) in std::mem::take(&mut self.resources) {
            let scope = match scope {
                Scope::Namespace(namespace) if !stays(&namespace) => Scope::Cluster,
                scope => scope,
            };
            let known = self.resources.entry((scope, group, resource)).or_default();
            for (name, verbs) in verbs {
                known.entry(name).or_default().extend(verbs);
            }
        }
    }

    /// The fewest rules that say the same: what counts everywhere is not said again for a namespace, nor for one name what counts
    /// for all.
    pub(super) fn rights(self) -> Rights {
        let mut rules: BTreeMap<Scope, Rules> = BTreeMap::new();
        for ((scope, group, resource), verbs) in &self.resources {
            let everywhere = self.resources.get(&(Scope::Cluster, group.clone(), resource.clone()));
            let everywhere = everywhere.filter(|_| *scope != Scope::Cluster);
            let said = |name: &Option<String>, verb: &String| {
                let says = |known: &Verbs, name: &Option<String>| known.get(name).is_some_and(|verbs| verbs.contains(verb));
                name.is_some() && says(verbs, &None) || everywhere.is_some_and(|known| says(known, &None) || says(known, name))
            };
            for (name, verbs) in verbs {
                let left: BTreeSet<String> = verbs.iter().filter(|verb| !said(name, verb)).cloned().collect();
                rules.entry(scope.clone()).or_default().add(group, resource, name.as_ref(), left);
            }
        }
        let mut rights =
            Rights { lifts: self.lifts.into_iter().collect(), open: self.open.into_iter().collect(), ..Rights::default() };
        for (scope, rules) in rules {
            match (scope, rules.finish()) {
                (_, rules) if rules.is_empty() => {}
                (Scope::Cluster, rules) => rights.cluster = rules,
                (Scope::Namespace(namespace), rules) => drop(rights.namespaces.insert(namespace, rules)),
            }
        }
        let paths = self.paths.into_iter().map(|(path, verbs)| PolicyRule {
            non_resource_urls: vec![path],
            verbs: verbs.into_iter().collect(),
            ..PolicyRule::default()
        });
        rights.cluster.extend(paths);
        rights
    }
}

impl From<&Rights> for Grants {
    fn from(rights: &Rights) -> Self {
        let mut grants = Self::default();
        rights.cluster.iter().for_each(|rule| grants.add_rule(&Scope::Cluster, rule));
        for (namespace, rules) in &rights.namespaces {
            rules.iter().for_each(|rule| grants.add_rule(&Scope::Namespace(namespace.clone()), rule));
        }
        grants.lifts.extend(rights.lifts.iter().cloned());
        grants.open.extend(rights.open.iter().cloned());
        grants
    }
}

/// What resources have in common that are one rule: group, verbs, names.
type Same = (String, BTreeSet<String>, Option<BTreeSet<String>>);

/// Rules of one scope: names of one resource with the same verbs are one rule, and resources of a group with the same names and
/// verbs too.
#[derive(Default)]
struct Rules {
    /// Group, resource, verbs; `None` where they are for all objects.
    names: BTreeMap<(String, String, BTreeSet<String>), Option<BTreeSet<String>>>,
}

impl Rules {
    fn add(&mut self, group: &str, resource: &str, name: Option<&String>, verbs: BTreeSet<String>) {
        if verbs.is_empty() {
            return;
        }
        let key = (group.to_owned(), resource.to_owned(), verbs);
        match name {
            None => drop(self.names.insert(key, None)),
            Some(name) => {
                // For all objects already: `said` has taken these verbs out before.
                if let Some(names) = self.names.entry(key).or_insert_with(|| Some(BTreeSet::new())) {
                    names.insert(name.clone());
                }
            }
        }
    }

    fn finish(self) -> Vec<PolicyRule> {
        let mut joined: BTreeMap<Same, Vec<String>> = BTreeMap::new();
        for ((group, resource, verbs), names) in self.names {
            joined.entry((group, verbs, names)).or_default().push(resource);
        }
        let mut rules: Vec<PolicyRule> = joined
            .into_iter()
            .map(|((group, verbs, names), resources)| PolicyRule {
                api_groups: vec![group],
                resources,
                resource_names: names.into_iter().flatten().collect(),
                non_resource_urls: Vec::new(),
                verbs: verbs.into_iter().collect(),
            })
            .collect();
        rules.sort_by(|a, b| {
            (&a.api_groups, &a.resources, &a.resource_names).cmp(&(&b.api_groups, &b.resources, &b.resource_names))
        });
        rules
    }
}
