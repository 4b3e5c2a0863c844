//! The functions that expressions may call, for the interpreter and for the checker from one table.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use cel::{
    Env,
    common::types::{
        BOOL_TYPE, BYTES_TYPE, DOUBLE_TYPE, DURATION_TYPE, DYN_TYPE, INT_TYPE, LIST_TYPE, MAP_TYPE, NULL_TYPE, OPTIONAL_TYPE,
        STRING_TYPE, TIMESTAMP_TYPE, TYPE_TYPE, Type as RuntimeType, UINT_TYPE,
    },
    extensions,
};

use super::{
    check::suggest,
    library::{self, Entry, Run, opaque},
    macros::Macro,
    parsed::Parsed,
    signature::Signature,
    types::Type,
};

/// A set of functions. Building one takes a few milliseconds; each is built when first used.
pub(super) struct Environment {
    interpreter: Arc<Env>,
    functions: BTreeMap<&'static str, Vec<Signature>>,
    /// Functions of the interpreter that ours stand in for.
    replaced: BTreeMap<&'static str, String>,
    /// Functions whose result holds copies of their arguments.
    copying: BTreeSet<&'static str>,
    /// What was parsed in it.
    parsed: Parsed,
}

/// Which functions an expression may call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// kro's environment: templates, conditions, status.
    #[default]
    Kro,
    /// The delivery controllers' environment: `additionalStatusFields` of a Resource, with `toOCI()`, math and sets.
    Delivery,
    /// The same with `semverCheck(version, constraint)`: selectors and extracts of a Discovery.
    Discovery,
}

impl Environment {
    /// kro's.
    pub(super) fn kro() -> &'static Self {
        static KRO: LazyLock<Environment> = LazyLock::new(|| Environment::new(&library::kro(), false, ""));
        &KRO
    }

    pub(super) fn of(dialect: Dialect) -> &'static Self {
        static DELIVERY: LazyLock<Environment> = LazyLock::new(|| Environment::new(&library::delivery(), true, ""));
        static DISCOVERY: LazyLock<Environment> = LazyLock::new(|| Environment::new(&library::discovery(), true, ""));
        match dialect {
            Dialect::Kro => Self::kro(),
            Dialect::Delivery => &DELIVERY,
            Dialect::Discovery => &DISCOVERY,
        }
    }

    /// The functions of `entries`; `math` adds the interpreter's mathematical ones. Names are looked up in `container` first.
    pub(super) fn new(entries: &[Entry], math: bool, container: &str) -> Self {
        let mut env = Env::stdlib();
        env.set_error_on_duplicate_map_keys(false);
        let extended = env
            .add_extension(extensions::strings)
            .and_then(|()| env.add_extension(extensions::lists))
            .and_then(|()| env.add_extension(extensions::encoders))
            .and_then(|()| if math { env.add_extension(extensions::math) } else { Ok(()) })
            .and_then(|()| env.set_container(container));
        extended.expect("the interpreter's own extensions do not conflict");
        for (_, runtime) in opaque::types() {
            env.add_type(runtime.to_owned()).expect("type names are distinct");
        }
        let mut environment = Self {
            interpreter: Arc::new(Env::default()),
            functions: BTreeMap::new(),
            replaced: BTreeMap::new(),
            copying: BTreeSet::new(),
            parsed: Parsed::default(),
        };
        for entry in entries {
            environment.add(&mut env, entry);
        }
        library::woven(&mut env).expect("names with @ are ours alone");
        environment.interpreter = Arc::new(env);
        environment
    }

    fn add(&mut self, env: &mut Env, entry: &Entry) {
        for text in entry.signatures {
            let signature = Signature::parse(entry.name, text);
            if copies(&signature.result) {
                self.copying.insert(entry.name);
            }
            let (name, run) = match entry.run {
                Run::Interpreter => (None, None),
                Run::Ours(run) => (Some(entry.name.to_owned()), Some(run)),
                Run::Instead(run) => (Some(format!("@{}", entry.name)), Some(run)),
            };
            if let (Some(name), Some(run)) = (name, run) {
                register(env, &name, text, &signature, run);
                if matches!(entry.run, Run::Instead(_)) {
                    self.replaced.insert(entry.name, name);
                }
            }
            self.functions.entry(entry.name).or_default().push(signature);
        }
    }

    pub(super) fn interpreter(&self) -> &Env {
        &self.interpreter
    }

    pub(super) fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    pub(super) fn interpreter_shared(&self) -> Arc<Env> {
        Arc::clone(&self.interpreter)
    }

    /// The overloads of a function.
    pub(super) fn overloads(&self, name: &str) -> &[Signature] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Names of all functions.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }

    /// Whether a full name such as `json.marshall` begins with the name of a library.
    pub(super) fn is_in_library(&self, full: &str) -> bool {
        let Some((library, _)) = full.rsplit_once('.') else { return false };
        self.names().any(|name| name.rsplit_once('.').is_some_and(|(of, _)| of == library))
    }

    /// The function or macro that was probably meant, by its full name.
    pub(super) fn meant(&self, written: &str) -> Option<&'static str> {
        let names = self.names().chain(Macro::NAMES).filter(|name| name.starts_with(char::is_alphabetic));
        suggest::function(written, names)
    }

    /// The name that a function has in the interpreter.
    pub(super) fn replacement<'a>(&'a self, name: &'a str) -> &'a str {
        self.replaced.get(name).map_or(name, String::as_str)
    }

    /// Whether the result of a function may hold what its arguments hold.
    pub(super) fn copies(&self, name: &str) -> bool {
        self.copying.contains(name)
    }
}

fn copies(result: &Type) -> bool {
    matches!(result, Type::List(_) | Type::Map(..) | Type::Var(_) | Type::Dyn | Type::Optional(_))
}

/// The interpreter picks overloads by the outer type alone, so overloads that differ only in elements are registered once.
fn register(env: &mut Env, name: &str, id: &str, signature: &Signature, run: cel::common::functions::Function) {
    let mut parameters: Vec<RuntimeType> = signature.parameters.iter().map(runtime_type).collect();
    let added = if signature.member {
        let receiver = parameters.remove(0);
        env.add_member_overload(name, id, receiver, parameters, run)
    } else {
        env.add_overload(name, id, parameters, run)
    };
    // The only way to fail is that the same outer types are registered already.
    drop(added);
}

fn runtime_type(of: &Type) -> RuntimeType {
    match of {
        Type::Dyn | Type::Var(_) | Type::Struct(_) => DYN_TYPE,
        Type::Null => NULL_TYPE,
        Type::Bool => BOOL_TYPE,
        Type::Int => INT_TYPE,
        Type::Uint => UINT_TYPE,
        Type::Double => DOUBLE_TYPE,
        Type::String => STRING_TYPE,
        Type::Bytes => BYTES_TYPE,
        Type::Timestamp => TIMESTAMP_TYPE,
        Type::Duration => DURATION_TYPE,
        Type::List(_) => LIST_TYPE,
        Type::Map(..) => MAP_TYPE,
        Type::Optional(_) => OPTIONAL_TYPE,
        Type::Type(_) => TYPE_TYPE,
        Type::Opaque(name) => {
            opaque::types().into_iter().find(|(known, _)| known == name).map_or(DYN_TYPE, |(_, runtime)| runtime.to_owned())
        }
    }
}

/// Whether kro's environment has a function of this full name: `size`, `json.marshal`.
pub fn is_function(name: &str) -> bool {
    Environment::kro().has_function(name)
}

/// The function or macro of kro's environment that was probably meant, by its full name.
pub fn function_meant(written: &str) -> Option<&'static str> {
    Environment::kro().meant(written)
}

/// Whether a name means a type where no variable is called so: `string` in `type(x) == string`.
pub fn is_type_name(name: &str) -> bool {
    type_of_name(name).is_some()
}

/// The type that a name means.
pub(super) fn type_of_name(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "string" => Type::String,
        "list" => Type::list(Type::Dyn),
        "map" => Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn)),
        "null_type" => Type::Null,
        "type" => Type::Type(Box::new(Type::Dyn)),
        "dyn" => Type::Dyn,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        _ => Type::Opaque(opaque::types().into_iter().find(|(known, _)| *known == name)?.0.into()),
    })
}
