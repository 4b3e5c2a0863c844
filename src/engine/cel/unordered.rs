//! Lists whose order says nothing: `x-kubernetes-list-type` set and map.
//!
//! For functions such a list is a list like any other. It differs in two operators, where it stands on their left, as in Kubernetes'
//! CEL: `==` looks for each element wherever it is, and `+` adds what is not there yet; elements of a map list are the same where their
//! keys are, and the right one then takes the left one's place.

use std::collections::{HashMap, HashSet};

use cel::{
    ExecutionError,
    common::{
        traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer},
        types::{CelList, CelMap, CelMapKey, Type},
        value::{Builtin, BuiltinRef, CowVal, Val},
    },
};

use super::{library::arguments::no_overload, value::to_json};

/// A list of type set or map.
#[derive(Clone, Debug)]
pub(super) struct Unordered<'v> {
    list: CelList<'v>,
    keys: Keys,
}

/// What makes two elements the same.
#[derive(Clone, Debug)]
enum Keys {
    /// The whole element.
    Whole,
    /// The fields of these names.
    Fields(Vec<String>),
}

impl Keys {
    /// What to find an element by; `None` for one that cannot be in such a list.
    fn of(&self, element: &dyn Val) -> Option<String> {
        let Self::Fields(names) = self else { return Some(to_json(element, None).ok()??.to_string()) };
        let fields = element.downcast_ref::<CelMap>()?.inner();
        let value = |name: &String| match fields.get(&CelMapKey::from(name.clone())) {
            Some(value) => Some(to_json(value.as_ref(), None).ok()??.to_string()),
            None => Some(String::new()),
        };
        Some(names.iter().map(value).collect::<Option<Vec<_>>>()?.join("\u{0}"))
    }
}

impl<'v> Unordered<'v> {
    /// A set of these.
    pub(super) fn set(list: CelList<'v>) -> Self {
        Self { list, keys: Keys::Whole }
    }

    /// A map list of these.
    pub(super) fn map(list: CelList<'v>, keys: &[String]) -> Self {
        Self { list, keys: Keys::Fields(keys.to_vec()) }
    }

    fn has_all(&self, others: &CelList<'_>) -> bool {
        let known: HashMap<_, _> = self.list.inner().iter().map(|element| (self.keys.of(element.as_ref()), element)).collect();
        others.inner().iter().all(|other| {
            let key = self.keys.of(other.as_ref());
            let found = key.is_some().then(|| known.get(&key)).flatten();
            found.is_some_and(|element| matches!(self.keys, Keys::Whole) || element.equals(other.as_ref()))
        })
    }

    fn union<'w>(&self, others: &CelList<'w>) -> Vec<Box<dyn Val + 'w>>
    where
        'v: 'w,
    {
        let mut elements: Vec<Box<dyn Val + 'w>> = self.list.inner().iter().map(|element| element.clone_as_boxed()).collect();
        let keyed = elements.iter().enumerate().map(|(at, element)| (self.keys.of(element.as_ref()), at));
        let known: HashMap<_, _> = keyed.collect();
        let mut added = HashSet::new();
        for other in others.inner() {
            let key = self.keys.of(other.as_ref());
            match known.get(&key) {
                Some(at) if matches!(self.keys, Keys::Fields(_)) => elements[*at] = other.clone_as_boxed(),
                Some(_) => {}
                None if matches!(self.keys, Keys::Whole) && !added.insert(key) => {}
                None => elements.push(other.clone_as_boxed()),
            }
        }
        elements
    }
}

impl Val for Unordered<'_> {
    fn get_type(&self) -> &Type {
        self.list.get_type()
    }

    fn cel_type() -> &'static Type {
        CelList::cel_type()
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.list.as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.list.as_indexer()
    }

    fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
    where
        Self: 'w,
    {
        Box::new(self.list).into_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.list.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.list.as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.list.as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let other = other.downcast_ref::<CelList>();
        other.is_some_and(|other| self.list.inner().len() == other.inner().len() && self.has_all(other))
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }

    /// So that whoever looks for a list finds one. The interpreter has no other way to be told; its version is fixed by `Cargo.lock`, and
    /// `a_list_of_any_type_is_one_for_every_function` fails where it changes its mind.
    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        self.list.as_builtin()
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        Box::new(self.list).into_builtin()
    }
}

impl Adder for Unordered<'_> {
    fn add<'b, 'w>(&'b self, other: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let others = other.downcast_ref::<CelList>();
        let others = others.ok_or_else(no_overload)?;
        Ok(CowVal::owned(Unordered { list: CelList::from(self.union(others)), keys: self.keys.clone() }))
    }
}
