//! SimpleSchema: kro's short form of OpenAPI (`name: string | required=true`). Source: reference/kro.md section 2.
//!
//! Two steps: [`translate`] means exactly what kro means and says what kro says; [`build`] also refuses what kro lets through
//! until the API server refuses the CRD.

mod default;
mod grammar;
mod lexer;
mod marker;
mod object;
mod scalar;
#[cfg(test)]
mod tests;
mod types;

use serde_json::{Map, Value};

use crate::{Diagnostic, schema::Schema};

/// A schema, and what its author should know though it is accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Built {
    /// The schema of `spec`.
    pub schema: Schema,
    /// Findings that kro lets through with a meaning the author hardly wants.
    pub warnings: Vec<Diagnostic>,
}

/// What is wrong with a schema, and what is known of it all the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    /// The schema of `spec`; a field that could not be read has no type and takes any value.
    pub schema: Box<Schema>,
    /// All mistakes, ordered by path.
    pub errors: Vec<Diagnostic>,
}

/// Builds the schema of an RGD's `spec.schema.spec` with its `spec.schema.types`.
///
/// All findings at once, ordered by path; paths are those in the RGD (`spec.schema.spec.a.b`, `spec.schema.types.T.a`). Where
/// kro has a message, it is kro's; where a marker is at fault, `expression` holds the field's text and the marker's offset.
pub fn build(spec: &Map<String, Value>, types: &Map<String, Value>) -> Result<Built, Refused> {
    judged(translate(spec, Some(types)))
}

/// The same where custom types cannot be read: what is of one takes any value.
pub fn build_without_types(spec: &Map<String, Value>) -> Result<Built, Refused> {
    judged(translate(spec, None))
}

fn judged(translation: Translation) -> Result<Built, Refused> {
    let Translation { schema, mut findings } = translation;
    findings.errors.append(&mut findings.refused);
    if findings.errors.is_empty() {
        Ok(Built { schema, warnings: ordered(findings.warnings) })
    } else {
        Err(Refused { schema: Box::new(schema), errors: ordered(findings.errors) })
    }
}

/// A schema as kro makes it, and everything there is to say.
struct Translation {
    schema: Schema,
    findings: Findings,
}

/// What was found, by who objects.
#[derive(Default)]
struct Findings {
    /// kro's own errors.
    errors: Vec<Diagnostic>,
    /// kro accepts it and the API server refuses the CRD.
    refused: Vec<Diagnostic>,
    /// Everybody accepts it.
    warnings: Vec<Diagnostic>,
}

fn translate(spec: &Map<String, Value>, types: Option<&Map<String, Value>>) -> Translation {
    let mut findings = Findings::default();
    let types = match types {
        Some(types) => types::resolve(types, &mut findings),
        None => types::unread(spec),
    };
    let mut schema = object::build(spec, &types, "spec.schema.spec", &mut findings);
    if !object::is_small(&schema) {
        findings.errors.push(object::too_large("spec.schema.spec"));
        schema = Schema::any();
    }
    Translation { schema, findings }
}

fn ordered(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings.sort();
    findings.dedup();
    findings
}
