//! What the tools printed: the component versions in it, and descriptors where it has any.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read::{contents, find, repository, same};
use super::{Verdict, ends, text};
use crate::access::Access;
use crate::descriptor::Descriptor;
use crate::normalise::Normalisation;
use crate::repository::{ComponentRepository, ComponentVersion, Content};
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::SourceRef;
use crate::testing::{data, offline};

type Pairs = BTreeSet<(String, String)>;

/// Component names of the corpus with the versions behind them, as tables and trees have them.
fn pairs(text: &str) -> Pairs {
    let (mut found, mut last) = (Pairs::new(), None);
    for word in text.split_whitespace().flat_map(|word| word.split("->")) {
        match word.split_once(':') {
            _ if !word.starts_with("acme.example/") => {
                let is_version = word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
                if let (Some(name), true) = (&last, is_version) {
                    found.insert((String::clone(name), word.to_owned()));
                }
            }
            Some((name, version)) => drop(found.insert((name.to_owned(), version.to_owned()))),
            None => last = Some(word.to_owned()),
        }
    }
    found
}

async fn closure(archive: &str, component: &str) -> Result<Pairs, String> {
    let source = format!("ctf::{}//{component}", data().join("ocm").join(archive).display());
    let channel = inspect(&SourceRef::parse(&source).unwrap(), &Selection::default(), &offline()).await;
    let pair = |at: plinth_api::lock::LockedComponent| (at.name, at.version);
    channel.map(|channel| channel.lock.components.into_iter().map(pair).collect()).map_err(|error| error.to_string())
}

/// The items of a JSON output; `None` where it is text.
fn items(text: &str) -> Option<Vec<Value>> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.get("items").unwrap_or(&value).as_array().cloned()
}

const STABLE: &str = "acme.example/releasechannel/stable:2026.11.0";

/// Outputs of listings, by what they were printed for.
pub(super) async fn printed(file: &str) -> Verdict {
    let name = file.rsplit('/').next().unwrap();
    let text = text(file);
    if text.is_empty() {
        return Verdict::Input;
    }
    let (tool, what) = name.split_once('.').unwrap();
    let own = if tool.starts_with("v1") { "ctf/v1" } else { "ctf/v2" };
    let (archive, component) = match what {
        _ if file.starts_with("golden/ctf/") => (read_by_other(name), STABLE),
        "cycle.txt" | "cycle-transfer.txt" | "cycle-sign.txt" => ("ctf/hand/cycle", "acme.example/hand/cycle-x:1.0.0"),
        _ if what.starts_with("broken-") => ("ctf/v1", "acme.example/broken/top:1.0.0"),
        "diamond.txt" => (own, "acme.example/diamond/top:1.0.0"),
        "nested.txt" => (own, "acme.example/nest/a:1.0.0"),
        "samename.txt" => (own, "acme.example/releasechannel/samename:1.0.0"),
        "get-sources.json" | "list-cv.json" | "show-versions.txt" | "show-versions-semantic.txt" => {
            return versions(what, own, &text).await;
        }
        _ if tool == "v2" && file.starts_with("golden/cli") => ("signed/v4alpha1-pkcs1-sha256", STABLE),
        _ if file.starts_with("golden/cli") => ("signed/v3-pkcs1-sha256", STABLE),
        _ => ("ctf/v1", STABLE),
    };
    match (what, closure(archive, component).await) {
        ("cycle.txt" | "cycle-transfer.txt" | "cycle-sign.txt", Err(error)) if error.contains("cycle") => {
            if text.contains("component version recursion") {
                Verdict::Equal
            } else {
                Verdict::Listed("a cycle of references (17.8, 17.9)")
            }
        }
        (_, Err(error)) if what.starts_with("broken-") && error.contains("leads to a version that is in none of") => {
            if text.contains("Error") { Verdict::Equal } else { Verdict::Listed("a broken reference (17.13)") }
        }
        (_, Err(error)) => Verdict::Wrong(error),
        ("split-none.txt" | "split-nolookup.txt" | "split-lookup.txt", Ok(_)) if !text.contains("Error") => {
            Verdict::Listed("a broken reference (17.13)")
        }
        ("split-none.txt", Ok(_)) => Verdict::Equal,
        // Types are called like components: only the way to each resource counts.
        ("get-resources-r.wide.txt", Ok(ours)) => {
            let ways: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
            compared(&ways.join("\n"), &ours, archive, tool).await
        }
        ("verify.reg.txt", Ok(_)) => Verdict::of(text.contains("successfully verified") || text.contains("SUCCESSFUL"), || {
            "the tool did not verify".to_owned()
        }),
        (_, Ok(ours)) => compared(&text, &ours, archive, tool).await,
    }
}

fn read_by_other(name: &str) -> &'static str {
    match name {
        "v1cli-reads-v2.txt" => "ctf/v2",
        "v1cli-reads-v2-byval.txt" => "ctf/v2-byval",
        "v2cli-reads-v1-byval.txt" => "ctf/v1-byval",
        _ => "ctf/v1-byval.tar",
    }
}

/// Descriptors by their normal forms, references and resources by where they are, tables by their component versions.
async fn compared(text: &str, ours: &Pairs, archive: &str, tool: &str) -> Verdict {
    let Some(items) = items(text) else {
        let theirs = pairs(text);
        // Some tables are of the root's references alone, and name their parent on the way.
        let is_part = !theirs.is_empty() && theirs.is_subset(ours);
        return Verdict::of(is_part && theirs.len() + 1 >= ours.len(), || format!("ours {ours:?}, theirs {theirs:?}"));
    };
    for item in &items {
        let is_known = match item.get("element") {
            Some(element) => element_is_known(item, element, archive).await,
            None => descriptor_is_known(item, archive, tool).await,
        };
        if let Err(found) = is_known {
            return Verdict::Wrong(found);
        }
    }
    Verdict::of(!items.is_empty(), || "it has no item".to_owned())
}

async fn element_is_known(item: &Value, element: &Value, archive: &str) -> Result<(), String> {
    let at = item["context"].as_array().and_then(|path| path.last()?.as_str()?.split_once(':'));
    let (name, version) = at.ok_or("it has no context")?;
    let descriptor = find(archive, name, version).await?;
    let is_it = |there: &Value| {
        ["name", "version", "type", "componentName", "extraIdentity"].iter().all(|key| there.get(*key) == element.get(*key))
    };
    let lists = ["resources", "sources", "componentReferences"].map(|list| &descriptor.document["component"][list]);
    let is_there = lists.iter().filter_map(|list| list.as_array()).flatten().any(is_it);
    if is_there { Ok(()) } else { Err(format!("{element} is not in ours")) }
}

async fn descriptor_is_known(item: &Value, archive: &str, tool: &str) -> Result<(), String> {
    let theirs = Descriptor::from_value(item.clone()).map_err(|error| error.to_string())?;
    let form = if tool == "v1" { Normalisation::V3 } else { Normalisation::V4Alpha1 };
    let ours = find(archive, &theirs.name, &theirs.version).await?;
    if same(&ours, &theirs, form) { Ok(()) } else { Err(format!("{}:{} has another normal form", theirs.name, theirs.version)) }
}

/// Versions, and elements, of the gateway.
async fn versions(what: &str, archive: &str, text: &str) -> Verdict {
    const GATEWAY: &str = "acme.example/services/gateway";
    if what == "get-sources.json" {
        let items = items(text).unwrap();
        return Verdict::from(element_is_known(&items[0], &items[0]["element"], archive).await);
    }
    let ours: BTreeSet<String> = repository(contents(archive)).versions(GATEWAY).await.unwrap().into_iter().collect();
    let theirs: BTreeSet<String> = match items(text) {
        Some(items) => items
            .iter()
            .map(|item| item.pointer("/component/version").or_else(|| item.get("version")).unwrap().as_str().unwrap().to_owned())
            .collect(),
        None => text.lines().filter(|line| !line.contains("warning")).map(str::to_owned).collect(),
    };
    // One tool leaves prereleases out of what it calls semantic, and one lists only what a range without them allows.
    let is_all = ours == theirs;
    let are_releases = ours.iter().filter(|version| !version.contains('-')).eq(theirs.iter());
    Verdict::of(
        is_all || (are_releases && what != "show-versions.txt") || theirs.is_subset(&ours) && what == "list-cv.json",
        || format!("ours {ours:?}, theirs {theirs:?}"),
    )
}

/// `CASE/COMPONENT.VERB.TOOL.END`, or what a tool wrote: texts of errors are compared by their rows in SUMMARY.tsv.
pub(super) async fn hand(file: &str) -> Verdict {
    let (case, name) = file.trim_start_matches("golden/hand/").split_once('/').unwrap();
    let archive = format!("ctf/hand/{case}");
    if !data().join("ocm").join(&archive).exists() {
        return Verdict::Absent;
    }
    if name == "out1" || name == "out2" {
        return written(case, file).await;
    }
    let is_json = ends(name, "json");
    let Some(items) = items(&text(file)).filter(|items| is_json && !items.is_empty()) else { return Verdict::Input };
    let tool = if name.contains(".v1.") { "v1" } else { "v2" };
    for item in &items {
        let known = if item.get("meta").is_some() || item.get("apiVersion").is_some() {
            descriptor_is_known(item, &archive, tool).await
        } else {
            Ok(())
        };
        match (case, known) {
            (_, Ok(())) => {}
            ("tampered-descriptor", Err(_)) => {
                return Verdict::Listed("a changed descriptor in an archive (`tampered-descriptor`)");
            }
            ("unknown-schema", Err(_)) => return Verdict::Listed("a schema that nobody knows (`unknown-schema`)"),
            (_, Err(found)) => return Verdict::Wrong(found),
        }
    }
    Verdict::Equal
}

/// The bytes of the resource that a tool wrote out.
async fn written(case: &str, file: &str) -> Verdict {
    let repository = repository(contents(&format!("ctf/hand/{case}")));
    let theirs = std::fs::read(data().join("ocm").join(file)).unwrap();
    for entry in &contents(&format!("ctf/hand/{case}")).artifacts {
        let name = entry.repository.trim_start_matches("component-descriptors/");
        let at = ComponentVersion::new(name, entry.tag.clone().unwrap_or_default());
        let Ok(found) = repository.descriptor(&at).await else { continue };
        for resource in &found.descriptor.resources {
            let Access::LocalBlob { reference, .. } = Access::read(&resource.access) else { continue };
            let Ok(stream) = repository.open(name, &reference, Content::Blob).await else { continue };
            if stream.read(1 << 20).await.is_ok_and(|ours| ours == theirs) {
                return Verdict::Equal;
            }
        }
    }
    match case {
        "tampered-descriptor" => Verdict::Listed("a changed descriptor in an archive (`tampered-descriptor`)"),
        "tampered-blob" => Verdict::Listed("a changed blob (`tampered-blob`)"),
        _ => Verdict::Wrong("none of our resources has these bytes".to_owned()),
    }
}
