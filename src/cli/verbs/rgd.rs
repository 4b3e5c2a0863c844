//! `plinth rgd`: everything that is wrong with a definition, offline.

use std::path::{Path, PathBuf};

use plinth_api::Object;
use plinth_engine::{
    Diagnostic,
    diagnostic::Severity,
    graph::{Compiled, Definition, Missing, Options, compile},
    schema::{SchemaMap, builtin, crd},
    yaml,
};
use plinth_run::Outcome;
use serde_json::json;

use crate::{
    args::{Output, Rgd},
    exit::Failure,
    out::Out,
};

/// One definition of one file, and what came of it.
struct Checked {
    file: PathBuf,
    name: String,
    compiled: Result<Compiled, Vec<Diagnostic>>,
}

/// Runs `plinth rgd …`.
pub(crate) fn run(verb: &Rgd, out: Out) -> Result<Outcome, Failure> {
    match verb {
        Rgd::Check { schemas, files, output } => check(schemas, files, *output, out),
        Rgd::Crd { schemas, file } => print_crd(schemas, file, out),
    }
}

fn check(schemas: &[PathBuf], files: &[PathBuf], output: Output, out: Out) -> Result<Outcome, Failure> {
    let checked = load(schemas, files)?;
    match output {
        Output::Human => checked.iter().for_each(|one| human(one, out)),
        Output::Json => out.data(&json!(checked.iter().map(document).collect::<Vec<_>>()).to_string()),
    }
    let rejected = checked.iter().any(|one| matches!(one.compiled, Err(_) | Ok(Compiled::Invalid(_))));
    Ok(if rejected { Outcome::Failed } else { Outcome::Done })
}

fn print_crd(schemas: &[PathBuf], file: &Path, out: Out) -> Result<Outcome, Failure> {
    for one in load(schemas, &[file.to_owned()])? {
        let Some(graph) = one.compiled.as_ref().ok().and_then(Compiled::graph) else {
            human(&one, out);
            return Ok(Outcome::Failed);
        };
        out.data(&serde_json::to_string_pretty(&graph.crd).expect("a CRD is JSON"));
    }
    Ok(Outcome::Done)
}

fn load(schemas: &[PathBuf], files: &[PathBuf]) -> Result<Vec<Checked>, Failure> {
    let known = known_kinds(schemas)?;
    let mut checked = Vec::new();
    for file in expand(files)? {
        let before = checked.len();
        checked.extend(check_file(&file, &known)?);
        // A folder may hold other things too; a file that was named was meant.
        if checked.len() == before && files.contains(&file) {
            let finding = Diagnostic::error("", format!("holds no {}", plinth_api::rgd::KIND));
            checked.push(Checked { file, name: String::new(), compiled: Err(vec![finding]) });
        }
    }
    Ok(checked)
}

fn check_file(file: &Path, known: &SchemaMap) -> Result<Vec<Checked>, Failure> {
    let text = read(file)?;
    let documents = match yaml::documents_with_duplicates(&text) {
        Ok(documents) => documents,
        Err(finding) => return Ok(vec![Checked { file: file.to_owned(), name: String::new(), compiled: Err(vec![finding]) }]),
    };
    let definitions = documents.iter().filter(|document| is_definition(&document.value));
    let checked = definitions.map(|document| Checked {
        file: file.to_owned(),
        name: document.value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        compiled: Definition::from_document(document, &text).map(|definition| compile(&definition, known, &Options::default())),
    });
    Ok(checked.collect())
}

fn is_definition(value: &serde_json::Value) -> bool {
    value["kind"] == plinth_api::rgd::KIND
}

/// Core kinds, and those of the CRDs in these folders.
fn known_kinds(folders: &[PathBuf]) -> Result<SchemaMap, Failure> {
    let mut known = builtin().clone();
    for file in expand(folders)? {
        let documents =
            yaml::documents(&read(&file)?).map_err(|finding| Failure::refused(format!("{}: {finding}", file.display())))?;
        for object in documents.into_iter().filter_map(|document| Object::from_value(document.value)) {
            if object.gvk().is_some_and(|gvk| gvk.kind == "CustomResourceDefinition") {
                let kinds = crd::kinds(&object).map_err(|finding| Failure::refused(format!("{}: {finding}", file.display())))?;
                kinds.into_iter().for_each(|kind| known.insert(kind));
            }
        }
    }
    Ok(known)
}

/// Files as they are, folders as the YAML files in them, sorted.
fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| Failure::refused(format!("read {}: {error}", path.display())))?;
        let mut inside: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        inside.retain(|file| file.is_dir() || file.extension().is_some_and(|end| end == "yaml" || end == "yml"));
        inside.sort();
        files.extend(expand(&inside)?);
    }
    Ok(files)
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::refused(format!("read {}: {error}", file.display())))
}

fn human(one: &Checked, out: Out) {
    let (word, findings, missing) = verdict(one);
    out.data(&format!("{word}  {}  {}", one.file.display(), one.name));
    findings.iter().for_each(|finding| out.data(&format!("  {}:{}", one.file.display(), finding.quoted())));
    missing.iter().for_each(|missing| out.data(&format!("  deferred  node {} waits for {}", missing.node, missing.gvk)));
}

fn verdict(one: &Checked) -> (&'static str, &[Diagnostic], &[Missing]) {
    match &one.compiled {
        Err(findings) => ("rejected", findings, &[]),
        Ok(compiled @ Compiled::Invalid(_)) => ("rejected", compiled.diagnostics(), &[]),
        Ok(compiled @ Compiled::Deferred { .. }) => ("deferred", compiled.diagnostics(), compiled.missing()),
        Ok(compiled @ Compiled::Active(_)) => ("accepted", compiled.diagnostics(), &[]),
    }
}

fn document(one: &Checked) -> serde_json::Value {
    let (word, findings, missing) = verdict(one);
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let missing: Vec<_> = missing.iter().map(|missing| json!({"node": missing.node, "kind": missing.gvk.to_string()})).collect();
    json!({"file": one.file, "name": one.name, "verdict": word, "errors": errors, "diagnostics": findings, "deferred": missing})
}
