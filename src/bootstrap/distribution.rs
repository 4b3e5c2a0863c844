//! Which distribution a channel holds: its top-level ResourceGraphDefinition, all definitions below it, and its instance.
//!
//! The top-level definition is the one whose kind no other definition makes (contracts 2).

mod read;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::{GroupKind, GroupVersionKind, Object, lock::LockedRef, rgd::RgdSpec};
use plinth_engine::{graph::Definition, yaml::Locations};
use plinth_releasechannel::localization::{Applied, Localization};

use crate::{content::Content, error::Error};

/// A distribution: everything that has to be on a cluster before the top-level instance can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The component version whose definition is the top-level one.
    pub component: LockedRef,
    /// The top-level definition and all definitions of component versions below it. A definition comes after those whose
    /// kinds it makes.
    pub rgds: Vec<Rgd>,
    /// The top-level instance as the distribution ships it, before values; a bare one named `default` where it ships none.
    pub instance: Object,
    /// Where its fields are in its text; nowhere where it is a bare one.
    pub instance_places: Locations,
    /// What became of the images that the documents name.
    pub images: Images,
}

/// Images in the documents of a distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Images {
    /// Where they are.
    pub map: Arc<Localization>,
    /// What was found, by document.
    pub found: Vec<(String, Applied)>,
}

/// One definition of a component version.
#[derive(Clone, Debug, PartialEq)]
pub struct Rgd {
    /// The component version that has it.
    pub component: LockedRef,
    /// Name of the resource.
    pub resource: String,
    /// The document.
    pub object: Object,
    /// What the compiler takes.
    pub definition: Definition,
}

/// What `--distribution NAME[@RANGE]` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Component name, or its last segment.
    pub name: String,
    /// Version or range; the channel's own selection has followed it already.
    pub range: Option<String>,
}

impl Choice {
    /// Reads the flag's text.
    pub fn parse(text: &str) -> Self {
        match text.split_once('@') {
            Some((name, range)) => Self { name: name.to_owned(), range: Some(range.to_owned()) },
            None => Self { name: text.to_owned(), range: None },
        }
    }

    fn names(&self, component: &LockedRef) -> bool {
        component.name == self.name || component.name.rsplit('/').next() == Some(self.name.as_str())
    }
}

impl Distribution {
    /// The top-level definition: the last one, because it comes after all that it makes use of.
    ///
    /// # Panics
    /// Where `rgds` is empty; [`choose`] makes none of those.
    pub fn root(&self) -> &Rgd {
        self.rgds.last().expect("a distribution has at least its top-level definition")
    }
}

impl Rgd {
    /// The kind that instances of this definition have.
    pub fn defines(&self) -> GroupVersionKind {
        let schema = &self.definition.spec.schema;
        GroupVersionKind::new(&schema.group, &schema.api_version, &schema.kind)
    }

    /// The kinds of the objects that it makes; a type that is an expression is left out.
    pub fn makes(&self) -> BTreeSet<GroupVersionKind> {
        made_kinds(&self.definition.spec)
    }
}

/// The kinds of a definition's templates.
fn made_kinds(spec: &RgdSpec) -> BTreeSet<GroupVersionKind> {
    let templates = spec.resources.iter().filter_map(|resource| resource.template.as_ref());
    templates.filter_map(|template| Object(template.clone().into()).gvk()).filter(|gvk| !gvk.kind.contains("${")).collect()
}

/// Finds the distribution in a channel; `choice` decides where there are several.
pub fn choose(content: &Content, choice: Option<&Choice>) -> Result<Distribution, Error> {
    let component = match &content.distribution {
        Some(component) => component.clone(),
        None => component(content, choice)?,
    };
    let scope = content.reachable(&component);
    let (rgds, found) = read::rgds(content, |other| scope.contains(other))?;
    unambiguous(&rgds)?;
    let rgds = ordered(rgds, &component)?;
    let root = rgds.last().ok_or_else(|| Error::NoDistribution(printed(&component)))?;
    let (instance, instance_places) = read::instance(content, &component, root)?;
    Ok(Distribution { component, rgds, instance, instance_places, images: Images { map: Arc::clone(&content.images), found } })
}

/// The component version with the top-level definition.
fn component(content: &Content, choice: Option<&Choice>) -> Result<LockedRef, Error> {
    let chosen = |component: &LockedRef| choice.is_none_or(|choice| choice.names(component));
    let outlines = read::outlines(content);
    if outlines.is_empty() {
        return Err(Error::NoDistribution(printed(&content.lock.root)));
    }
    let made: BTreeSet<GroupKind> = outlines.iter().flat_map(|outline| outline.makes.iter().cloned()).collect();
    let is_root = |outline: &&read::Outline| outline.defines.iter().any(|kind| !made.contains(kind));
    let mut roots: BTreeSet<&LockedRef> = outlines.iter().filter(is_root).map(|outline| outline.component).collect();
    // What a broken definition makes is not known, so that others look top-level: its mistakes come first, then the choice.
    if let Some(broken) = outlines.iter().find(|outline| outline.is_unreadable).filter(|_| roots.len() != 1) {
        roots = BTreeSet::from([broken.component]);
    }
    // A component that was asked for by name need not be top-level: its part of the platform comes up alone.
    let candidates: BTreeSet<&LockedRef> = match choice {
        None => roots.clone(),
        Some(_) => outlines.iter().map(|outline| outline.component).filter(|component| chosen(component)).collect(),
    };
    let mut candidates = candidates.into_iter();
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(only.clone()),
        (None, _) => match choice {
            Some(choice) => {
                Err(Error::UnknownDistribution { asked: choice.name.clone(), choices: roots.into_iter().map(printed).collect() })
            }
            None => Err(Error::Circular(outlines.iter().flat_map(|o| &o.defines).map(ToString::to_string).collect())),
        },
        (Some(first), Some(second)) => Err(Error::Choice {
            question: "the channel holds several distributions".into(),
            choices: [first, second].into_iter().chain(candidates).map(printed).collect(),
            flag: "--distribution NAME[@RANGE]",
        }),
    }
}

/// Two definitions of one kind (or of one name) would fight over it.
fn unambiguous(rgds: &[Rgd]) -> Result<(), Error> {
    for (index, rgd) in rgds.iter().enumerate() {
        let same = |other: &&Rgd| {
            other.defines().group_kind() == rgd.defines().group_kind()
                || other.definition.name == rgd.definition.name && other.definition.group == rgd.definition.group
        };
        let Some(other) = rgds[..index].iter().find(same) else { continue };
        return Err(Error::Choice {
            question: format!("kind {} is defined more than once", rgd.defines().group_kind()),
            choices: vec![printed(&other.component), printed(&rgd.component)],
            flag: "--select COMPONENT=RANGE",
        });
    }
    Ok(())
}

/// Sorts definitions so that each comes after those whose kinds it makes, and `component`'s own top-level one last.
fn ordered(mut rest: Vec<Rgd>, component: &LockedRef) -> Result<Vec<Rgd>, Error> {
    let mut sorted: Vec<Rgd> = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let open: BTreeSet<GroupKind> = rest.iter().map(|rgd| rgd.defines().group_kind()).collect();
        let is_free = |rgd: &Rgd| rgd.makes().iter().all(|kind| !open.contains(&kind.group_kind()));
        // What is free and of another component goes first, so that the top-level definition ends up last.
        let next = rest
            .iter()
            .position(|rgd| is_free(rgd) && rgd.component != *component)
            .or_else(|| rest.iter().position(is_free))
            .ok_or_else(|| Error::Circular(open.iter().map(ToString::to_string).collect()))?;
        sorted.push(rest.remove(next));
    }
    match sorted.last() {
        Some(last) if last.component != *component => Err(Error::NoDistribution(printed(component))),
        _ => top_level(sorted, component),
    }
}

/// Refuses a component with several definitions that nothing makes use of.
fn top_level(sorted: Vec<Rgd>, component: &LockedRef) -> Result<Vec<Rgd>, Error> {
    let made: BTreeSet<GroupKind> = sorted.iter().flat_map(Rgd::makes).map(|kind| kind.group_kind()).collect();
    let is_top = |rgd: &&Rgd| rgd.component == *component && !made.contains(&rgd.defines().group_kind());
    let tops: Vec<String> = sorted.iter().filter(is_top).map(|rgd| rgd.defines().group_kind().to_string()).collect();
    if tops.len() > 1 {
        let question = format!("component {} has several top-level definitions", printed(component));
        return Err(Error::Choice { question, choices: tops, flag: "--distribution NAME[@RANGE]" });
    }
    Ok(sorted)
}

/// `name:version`, the form in which people choose.
pub(crate) fn printed(component: &LockedRef) -> String {
    format!("{}:{}", component.name, component.version)
}
