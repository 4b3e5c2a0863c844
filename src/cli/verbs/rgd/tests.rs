//! What is said of inputs that are not there, or not what they should be.

use std::{fs, path::Path};

use clap::Parser;
use plinth_run::Outcome;
use tempfile::TempDir;

use super::*;
use crate::args::{Cli, Verb};

const SHOP: &str = "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: shop}
spec:
  schema: {apiVersion: v1alpha1, kind: Shop, spec: {name: string}}
  resources:
  - id: map
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: '${schema.spec.name}'}}
";
const CORNER: &str = "apiVersion: kro.run/v1alpha1\nkind: Shop\nmetadata: {name: corner, namespace: n}\nspec: {name: a}\n";
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.y.z}\n";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// A folder with one file of each kind of input.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("nothing")).unwrap();
    for (name, text) in [
        ("shop.yaml", SHOP.to_owned()),
        ("refused.yaml", SHOP.replace("ConfigMap", "ConfigMapp")),
        ("corner.yaml", CORNER.to_owned()),
        ("two.yaml", format!("{CORNER}---\n{}", CORNER.replace("corner", "market"))),
        ("misspelt.yaml", CORNER.replace("{name: a}", "{nme: a}")),
        ("other.yaml", CORNER.replace("Shop", "Shopp")),
        ("nameless.yaml", CORNER.replace("name: corner, ", "")),
        ("misnamed.yaml", CORNER.replace("corner", "A_b")),
        ("untyped.yaml", CORNER.replace("{name: a}", "[1]")),
        ("odd.yaml", CORNER.replace("{name: corner, namespace: n}", "corner")),
        ("map.yaml", MAP.to_owned()),
        ("crd.yaml", CRD.to_owned()),
        ("text.yaml", "only text\n".to_owned()),
        ("empty.yaml", String::new()),
        ("broken.yaml", "a: [\n".to_owned()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::write(folder.path().join("wide.yaml"), b"\xFF\xFEa\0").unwrap();
    folder
}

/// Runs `plinth rgd WORDS`, where a word with a dot, or `nothing`, is in the folder.
async fn rgd(folder: &Path, words: &str) -> Result<Outcome, Failure> {
    let place = |word: &str| match word {
        word if word.contains('.') || word == "nothing" => folder.join(word).display().to_string(),
        word => word.to_owned(),
    };
    let words = ["plinth", "rgd"].into_iter().map(str::to_owned).chain(words.split(' ').map(place));
    let Cli { global, verb: Verb::Rgd { verb, .. } } = Cli::try_parse_from(words).unwrap() else { panic!("another verb") };
    run(&global, &verb, Out::default()).await
}

/// What a flag names is refused with 4, by the flag and the file, and with a next step.
#[tokio::test]
async fn what_a_flag_names_and_is_not_what_it_takes_is_refused() {
    let folder = folder();
    for (words, said) in [
        ("check shop.yaml --schemas absent.yaml", "--schemas DIR/absent.yaml: cannot be read: No such file"),
        ("check shop.yaml --schemas nothing", "--schemas DIR/nothing: holds no CustomResourceDefinition"),
        ("check shop.yaml --schemas map.yaml", "--schemas DIR/map.yaml: holds no CustomResourceDefinition"),
        ("check shop.yaml --schemas empty.yaml", "--schemas DIR/empty.yaml: holds no CustomResourceDefinition"),
        ("check shop.yaml --schemas text.yaml", "--schemas DIR/text.yaml: line 1: it is no object"),
        ("graph shop.yaml --schemas broken.yaml", "--schemas DIR/broken.yaml: 1:4 unclosed bracket"),
        ("crd shop.yaml --schemas wide.yaml", "--schemas DIR/wide.yaml: cannot be read: it is UTF-16 text"),
        ("check shop.yaml --schemas crd.yaml", "--schemas DIR/crd.yaml: CRD \"x.y.z\": spec.group is missing"),
        ("render shop.yaml --instance absent.yaml", "--instance DIR/absent.yaml: cannot be read: No such file"),
        ("render shop.yaml --instance broken.yaml", "--instance DIR/broken.yaml: 1:4 unclosed bracket"),
        ("render shop.yaml --instance text.yaml", "--instance DIR/text.yaml: line 1: it is no object"),
        ("render shop.yaml --instance nothing", "it holds no Shop.kro.run/v1alpha1 (there is no object in it)"),
        ("render shop.yaml --instance other.yaml", "it holds no Shop.kro.run/v1alpha1 (it holds Shopp.kro.run/v1alpha1)"),
        ("render shop.yaml --instance two.yaml", "it holds 2 instances, and one is rendered: corner, market"),
        ("render shop.yaml --instance misspelt.yaml", "spec.nme: unknown field (did you mean \"name\"?)"),
        ("render shop.yaml --instance untyped.yaml", "spec: expected object, got array"),
        ("render shop.yaml --instance nameless.yaml", "metadata.name: is required and missing"),
        ("render shop.yaml --instance odd.yaml", "metadata.name: is required and missing"),
        ("render shop.yaml --instance misnamed.yaml", "metadata.name: \"A_b\": a lowercase RFC 1123 subdomain"),
        ("render shop.yaml --instance corner.yaml --observed absent.yaml", "--observed DIR/absent.yaml: cannot be read"),
        ("render shop.yaml --instance corner.yaml --observed text.yaml", "--observed DIR/text.yaml: line 1: it is no object"),
    ] {
        let failure = rgd(folder.path(), words).await.expect_err(words);
        let message = failure.message.replace(&folder.path().display().to_string(), "DIR");
        assert!(failure.outcome == Outcome::Refused && message.contains(said), "{words}: {message}");
        assert!(message.starts_with("--") && failure.hint.is_some(), "{words}: {failure:?}");
    }
}

/// What is judged is rejected with 1, whatever is wrong with it, and a folder without anything recorded is fine.
#[tokio::test]
async fn what_is_judged_is_rejected() {
    let folder = folder();
    for file in ["absent.yaml", "nothing", "map.yaml", "text.yaml", "empty.yaml", "broken.yaml", "wide.yaml", "refused.yaml"] {
        for words in ["check", "crd", "graph", "render --instance corner.yaml"] {
            assert_eq!(rgd(folder.path(), &format!("{words} {file}")).await, Ok(Outcome::Failed), "{words} {file}");
        }
    }
    let words = "render shop.yaml --instance corner.yaml --observed nothing --observed map.yaml";
    assert_eq!(rgd(folder.path(), words).await, Ok(Outcome::Done));
}

#[tokio::test]
async fn a_file_without_a_definition_says_what_it_holds() {
    let folder = folder();
    let Cli { global, .. } = Cli::try_parse_from(["plinth", "rgd", "check", "x"]).unwrap();
    for (name, said) in [
        (
            "absent.yaml",
            "cannot be read: No such file or directory (os error 2) (name a file, a folder, or - for standard input)",
        ),
        ("map.yaml", "holds no ResourceGraphDefinition (it holds ConfigMap)"),
        ("text.yaml", "holds no ResourceGraphDefinition (there is no object in it)"),
    ] {
        let checked = load::definitions(&global, &[], &[folder.path().join(name)]).await.unwrap();
        let found: Vec<String> = checked[0].findings().iter().map(ToString::to_string).collect();
        assert_eq!(found, [said], "{name}");
    }
}

/// A definition that makes another one: both kinds of definitions, and revisions, are known without a cluster.
#[tokio::test]
async fn definitions_of_definitions_are_known_offline() {
    let inner = |api: &str, field: &str| {
        format!(
            "{SHOP}  - id: inner\n    template:\n      apiVersion: {api}/v1alpha1\n      kind: ResourceGraphDefinition\n      metadata: {{name: inner}}\n      \
             spec: {{schema: {{apiVersion: v1, {field}: Till, spec: {{name: string}}}}, resources: []}}\n"
        )
    };
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("outer.yaml");
    let Cli { global, .. } = Cli::try_parse_from(["plinth", "rgd", "check", "x"]).unwrap();
    for api in ["kro.run", "krop.opendefense.cloud"] {
        for (field, verdict, said) in [("kind", "accepted", ""), ("knd", "rejected", "schema not found for field knd")] {
            fs::write(&file, inner(api, field)).unwrap();
            let checked = load::definitions(&global, &[], std::slice::from_ref(&file)).await.unwrap();
            let found: Vec<String> = checked[0].findings().iter().map(ToString::to_string).collect();
            assert!(checked[0].verdict() == verdict && found.concat().contains(said), "{api} {field}: {found:?}");
        }
    }
}
