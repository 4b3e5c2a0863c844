//! Types with parameters, and what may stand for what.

use std::collections::HashMap;

use crate::cel::{signature::Signature, types::Type};

/// Type variables and what has been found for them.
#[derive(Default)]
pub(super) struct Unifier {
    found: HashMap<u32, Type>,
    /// What to undo when an overload does not fit: a variable and what it was.
    trail: Vec<(u32, Option<Type>)>,
    next: u32,
}

/// Variables of signatures are letters; those of expressions start above all letters.
const FIRST: u32 = 0x11_0000;

impl Unifier {
    /// A type that is still to be found.
    pub(super) fn fresh(&mut self) -> Type {
        self.next += 1;
        Type::Var(FIRST + self.next)
    }

    /// Parameters and result of a signature with letters of its own.
    pub(super) fn instance(&mut self, signature: &Signature) -> (Vec<Type>, Type) {
        let mut letters = HashMap::new();
        let parameters = signature.parameters.iter().map(|parameter| self.renamed(parameter, &mut letters)).collect();
        (parameters, self.renamed(&signature.result, &mut letters))
    }

    fn renamed(&mut self, of: &Type, letters: &mut HashMap<u32, Type>) -> Type {
        match of {
            Type::Var(letter) => letters.entry(*letter).or_insert_with(|| self.fresh()).clone(),
            other => map_parts(other, &mut |part| self.renamed(part, letters)),
        }
    }

    /// Whether arguments fit parameters; if not, nothing is kept of the attempt.
    pub(super) fn all_assignable(&mut self, arguments: &[Type], parameters: &[Type]) -> bool {
        let mark = self.trail.len();
        let fit = arguments.iter().zip(parameters).all(|(argument, parameter)| self.assign(argument, parameter));
        if !fit {
            self.undo(mark);
        }
        fit
    }

    /// Whether a value of one type may stand where the other is wanted.
    pub(super) fn assignable(&mut self, value: &Type, wanted: &Type) -> bool {
        self.all_assignable(std::slice::from_ref(value), std::slice::from_ref(wanted))
    }

    fn undo(&mut self, mark: usize) {
        for (variable, was) in self.trail.split_off(mark).into_iter().rev() {
            match was {
                Some(was) => self.found.insert(variable, was),
                None => self.found.remove(&variable),
            };
        }
    }

    fn bind(&mut self, variable: u32, to: Type) {
        let was = self.found.insert(variable, to);
        self.trail.push((variable, was));
    }

    fn assign(&mut self, value: &Type, wanted: &Type) -> bool {
        if value == wanted {
            return true;
        }
        if let Type::Var(variable) = wanted {
            return self.substitute(*variable, value, false);
        }
        if let Type::Var(variable) = value {
            return self.substitute(*variable, wanted, true);
        }
        match (value, wanted) {
            (Type::Dyn, _) | (_, Type::Dyn) | (Type::Type(_), Type::Type(_)) => true,
            (Type::Null, other) | (other, Type::Null) => {
                matches!(other, Type::Timestamp | Type::Duration | Type::Struct(_) | Type::Opaque(_) | Type::Optional(_))
            }
            (Type::List(value), Type::List(wanted)) | (Type::Optional(value), Type::Optional(wanted)) => {
                self.assign(value, wanted)
            }
            (Type::Map(key, value), Type::Map(wanted_key, wanted)) => self.assign(key, wanted_key) && self.assign(value, wanted),
            (Type::Struct(value), Type::Struct(wanted)) => value.name == wanted.name,
            _ => false,
        }
    }

    /// Takes `with` for a variable. `turned` says that the variable is the value and `with` what is wanted.
    fn substitute(&mut self, variable: u32, with: &Type, turned: bool) -> bool {
        let Some(known) = self.found.get(&variable).cloned() else {
            if self.mentions(with, variable) {
                return matches!(self.shallow(with), Type::Var(other) if other == variable);
            }
            self.bind(variable, with.clone());
            return true;
        };
        let fits = if turned { self.assign(&known, with) } else { self.assign(with, &known) };
        if fits {
            let general = most_general(with.clone(), known);
            if !self.mentions(&general, variable) {
                self.bind(variable, general);
            }
        }
        fits
    }

    fn mentions(&self, of: &Type, variable: u32) -> bool {
        match of {
            Type::Var(other) => *other == variable || self.found.get(other).is_some_and(|found| self.mentions(found, variable)),
            Type::List(part) | Type::Optional(part) | Type::Type(part) => self.mentions(part, variable),
            Type::Map(key, value) => self.mentions(key, variable) || self.mentions(value, variable),
            _ => false,
        }
    }

    /// What a variable stands for; the parts may still be variables.
    pub(super) fn shallow(&self, of: &Type) -> Type {
        let mut of = of;
        while let Type::Var(variable) = of {
            match self.found.get(variable) {
                Some(found) => of = found,
                None => break,
            }
        }
        of.clone()
    }

    /// Decides that a variable without meaning is `dyn`, and gives what the type is.
    pub(super) fn settled(&mut self, of: &Type) -> Type {
        let of = self.shallow(of);
        if let Type::Var(variable) = of {
            self.bind(variable, Type::Dyn);
            return Type::Dyn;
        }
        of
    }

    /// The type with the variables replaced that have been found.
    pub(super) fn partly_resolved(&self, of: &Type) -> Type {
        map_parts(&self.shallow(of), &mut |part| self.partly_resolved(part))
    }

    /// The type without variables; what was not found is `dyn`.
    pub(super) fn resolved(&self, of: &Type) -> Type {
        match self.shallow(of) {
            Type::Var(_) => Type::Dyn,
            other => map_parts(&other, &mut |part| self.resolved(part)),
        }
    }
}

fn map_parts(of: &Type, change: &mut dyn FnMut(&Type) -> Type) -> Type {
    match of {
        Type::List(part) => Type::list(change(part)),
        Type::Optional(part) => Type::optional(change(part)),
        Type::Type(part) => Type::Type(Box::new(change(part))),
        Type::Map(key, value) => {
            let key = change(key);
            Type::Map(Box::new(key), Box::new(change(value)))
        }
        other => other.clone(),
    }
}

/// Of two types of which one may stand for the other, the one that says less.
pub(super) fn most_general(left: Type, right: Type) -> Type {
    if says_less(&left, &right) { left } else { right }
}

fn says_less(left: &Type, right: &Type) -> bool {
    match (left, right) {
        // Null joins what may be null, and then the other is the type.
        (Type::Dyn | Type::Var(_), _) | (_, Type::Null) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => says_less(left, right),
        (Type::Map(key, value), Type::Map(other_key, other)) => says_less(key, other_key) && says_less(value, other),
        (left, right) => left == right,
    }
}
