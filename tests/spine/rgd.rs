//! `plinth rgd`: looking at definitions without applying them, and what is refused before it is read.

use std::{fs, os::unix::fs::symlink, path::Path, time::Instant};

use plinth_support::{ApiServer, Identity};
use serde_json::Value;
use tempfile::TempDir;

use crate::plinth::{Finished, plinth};

const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/crds");
const RGDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/distributions/open-control-plane-kind/rgds");

/// A shop with a database; the database's kind is defined in the other file, the till's by nobody.
const SHOP: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: shop}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Shop
    spec:
      name: string
      regions: '[]string | default=["eu"]'
      monitored: boolean | default=false
  resources:
  - id: database
    template:
      apiVersion: kro.run/v1alpha1
      kind: Database
      metadata: {name: "${schema.spec.name}"}
      spec: {size: 3}
  - id: service
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${schema.spec.name}"}
      spec: {ports: [{port: 80}]}
  - id: regions
    forEach: [{region: "${schema.spec.regions}"}]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.spec.name + '-' + region}"}
      data:
        address: http://${service.spec.clusterIP}:${string(service.spec.ports[0].port)}
        host: ${database.status.host}
        answer: "yes"
  - id: monitor
    includeWhen: ["${schema.spec.monitored}"]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: monitor}
  - id: till
    template:
      apiVersion: example.org/v1
      kind: Till
      metadata: {name: till}
"#;

const DATABASE: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: database}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    spec: {size: integer}
    status: {host: "${service.spec.clusterIP}"}
  resources:
  - id: service
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${schema.metadata.name}"}
      spec: {ports: [{port: 5432}]}
"#;

const INSTANCE: &str =
    "apiVersion: kro.run/v1alpha1\nkind: Shop\nmetadata: {name: corner, namespace: town}\nspec: {name: corner}\n";

struct Folder(TempDir);

impl Folder {
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::with_prefix("plinth-rgds-").unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> String {
        self.0.path().display().to_string()
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

fn json(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}:\n{}", run.stdout))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_checked_at_once_and_its_kinds_know_each_other() {
    let folder = Folder::of(&[("a-shop.yaml", SHOP), ("b-database.yaml", DATABASE), ("notes.txt", "no YAML: [")]);
    let run = plinth(&["rgd", "check", "-o", "json", &folder.path()]).await.with_code(0);
    let all = json(&run);
    let verdicts: Vec<_> = all.as_array().unwrap().iter().map(|one| (one["name"].clone(), one["verdict"].clone())).collect();
    assert_eq!(verdicts, [("shop".into(), "deferred".into()), ("database".into(), "accepted".into())]);
    assert_eq!(all[0]["deferred"], serde_json::json!([{"node": "till", "kind": "Till.example.org/v1"}]));

    let wrong = DATABASE.replace("service.spec.clusterIP", "service.spec.clusterIp");
    fs::write(folder.file("b-database.yaml"), wrong).unwrap();
    let run = plinth(&["rgd", "check", &folder.path()]).await.with_code(1);
    for part in ["rejected", "b-database.yaml:", "clusterIp", "did you mean 'clusterIP'?"] {
        assert!(run.stdout.contains(part), "the findings lack {part}:\n{}", run.stdout);
    }
}

/// A reader, and `--quiet`, tell what stops a definition from what does not.
#[tokio::test(flavor = "multi_thread")]
async fn errors_and_warnings_are_told_apart() {
    let odd = SHOP.replace("      name: string\n", "      name: string\n      on: string\n");
    let folder = Folder::of(&[("odd.yaml", &odd), ("wrong.yaml", &odd.replace("service.spec.clusterIP", "service.spec.no"))]);
    let run = plinth(&["rgd", "check", &folder.file("odd.yaml")]).await.with_code(0);
    assert!(run.stdout.contains("\n  warning   ") && !run.stdout.contains("  error"), "{}", run.stdout);
    let run = plinth(&["rgd", "check", &folder.file("wrong.yaml")]).await.with_code(1);
    assert!(run.stdout.contains("\n  warning   ") && run.stdout.contains("\n  error     "), "{}", run.stdout);
    let run = plinth(&["rgd", "check", "--quiet", &folder.path()]).await.with_code(1);
    assert!(!run.stdout.contains("  warning") && run.stdout.contains("\n  error     "), "{}", run.stdout);
    assert!(run.stdout.starts_with("deferred  ") && !run.stdout.contains("waits for"), "{}", run.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_a_definition_is_no_success() {
    let folder = Folder::of(&[("notes.txt", "x"), ("map.yaml", "apiVersion: v1\nkind: ConfigMap\n")]);
    let run = plinth(&["rgd", "check", &folder.path()]).await.with_code(1);
    assert!(run.stdout.contains("holds no ResourceGraphDefinition"), "{}", run.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dash_is_standard_input() {
    let folder = Folder::of(&[("database.yaml", DATABASE), ("shop.yaml", SHOP), ("instance.yaml", INSTANCE)]);
    let reading = |name: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plinth"));
        let output = command.args(arguments).stdin(fs::File::open(folder.file(name)).unwrap()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = reading("database.yaml", &["rgd", "check", "-"]);
    assert!(code == Some(0) && said.starts_with("accepted  -  database"), "{said}");
    let (code, said) = reading("instance.yaml", &["rgd", "render", &folder.file("shop.yaml"), "--instance", "-"]);
    assert!(code == Some(0) && said.contains("name: corner-eu"), "{said}");
    assert_eq!(reading("shop.yaml", &["rgd", "render", "-", "--instance", "-"]).0, Some(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_graphs_are_drawn() {
    let text = plinth(&["rgd", "graph", "--schemas", CRDS, RGDS]).await.with_code(0);
    for part in ["openmcp-operator  makes", "reads", "deferred: kind not served yet"] {
        assert!(text.stdout.contains(part), "the text lacks {part}:\n{}", text.stdout);
    }
    let dot = plinth(&["rgd", "graph", "-o", "dot", "--schemas", CRDS, RGDS]).await.with_code(0);
    assert_eq!(dot.stdout.matches("digraph ").count(), 4, "{}", dot.stdout);
    let folder = Folder::of(&[("shop.yaml", SHOP), ("database.yaml", DATABASE)]);
    let run = plinth(&["rgd", "graph", "-o", "json", &folder.file("shop.yaml")]).await.with_code(0);
    let graph = &json(&run)[0];
    let node = |id: &str| graph["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap().clone();
    assert_eq!(node("regions")["node"], "collection");
    assert_eq!(node("regions")["iterators"], serde_json::json!(["region"]));
    assert_eq!((node("till")["deferred"].clone(), node("till")["plane"].clone()), (true.into(), "host".into()));
    assert_eq!(node("monitor")["conditional"], true);
    let edges = serde_json::json!([{"from": "database", "to": "regions"}, {"from": "service", "to": "regions"}]);
    assert_eq!(graph["edges"], edges);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_03_render() {
    let folder = Folder::of(&[("shop.yaml", SHOP), ("database.yaml", DATABASE), ("instance.yaml", INSTANCE)]);
    let (file, instance) = (folder.file("shop.yaml"), folder.file("instance.yaml"));
    let run = plinth(&["rgd", "render", &file, "--instance", &instance]).await.with_code(0);
    let documents = plinth_engine::yaml::documents(&run.stdout).unwrap();
    let names: Vec<_> = documents.iter().map(|document| document.value["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["corner", "corner", "corner-eu", "till"], "{}", run.stdout);
    let region = &documents[2].value;
    assert_eq!(region["data"]["address"], "http://example-clusterip:80");
    assert_eq!(region["data"]["answer"], "yes", "text stays text");
    assert_eq!(region["metadata"]["namespace"], "town");
    for line in [
        "data.address: stands for service.spec.clusterIP",
        "data.host: stands for database",
        "deferred  till",
        "left out  monitor",
    ] {
        assert!(run.stderr.contains(line), "standard error lacks {line}:\n{}", run.stderr);
    }

    let recorded = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata: {name: corner, namespace: town}\n  spec: {clusterIP: 10.0.0.7, ports: [{port: 8080}]}\n";
    let observed = Folder::of(&[("services.yaml", recorded)]);
    let arguments = ["rgd", "render", &file, "--instance", &instance, "--observed", &observed.path(), "--quiet"];
    let run = plinth(&arguments).await.with_code(0);
    assert!(run.stdout.contains("http://10.0.0.7:8080"), "{}", run.stdout);
    eprintln!("SHOW 03 render {} children, {} examples named", documents.len(), 2);

    let lacking = INSTANCE.replace("{name: corner}\n", "{}\n");
    fs::write(&instance, lacking).unwrap();
    let run = plinth(&["rgd", "render", &file, "--instance", &instance]).await.with_code(1);
    assert!(run.stderr.contains("does not set spec.name"), "{}", run.stderr);
    fs::write(&instance, INSTANCE.replace("{name: corner}\n", "{name: corner, regoins: []}\n")).unwrap();
    let run = plinth(&["rgd", "render", &file, "--instance", &instance]).await.with_code(4);
    assert!(run.stderr.contains("regoins"), "{}", run.stderr);
}

/// Each refusal names its bound, and none takes long, though reading would never end.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_whole_is_refused_at_once() {
    let folder = Folder::of(&[("good.yaml", DATABASE), ("large.yaml", &format!("{DATABASE}# {}", "x".repeat(10_000_000)))]);
    let pipe = folder.file("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("loop.yaml", folder.file("loop.yaml")).unwrap();
    let deep = format!("a: {}{}", "[".repeat(5000), "]".repeat(5000));
    let bomb = (1..9).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
        let before = format!("*a{}", n - 1);
        format!("{text}a{n}: &a{n} [{}]\n", vec![before; 10].join(", "))
    });
    fs::write(folder.file("deep.yaml"), deep).unwrap();
    fs::write(folder.file("bomb.yaml"), bomb).unwrap();
    let began = Instant::now();
    for (file, said) in [
        ("/dev/zero".to_owned(), "no regular file"),
        (pipe.clone(), "no regular file"),
        (folder.file("loop.yaml"), "loop.yaml"),
        (folder.file("large.yaml"), "more than the 8388608"),
        (folder.file("deep.yaml"), "recursion limit"),
        (folder.file("bomb.yaml"), "too much text has anchors"),
        (folder.file("absent.yaml"), "absent.yaml"),
    ] {
        let run = plinth(&["rgd", "check", &file]).await.with_code(1);
        assert!(run.stdout.contains(said), "{file}: the finding lacks {said}:\n{}", run.stdout);
    }
    // One bad file does not keep the others from being checked.
    let run = plinth(&["rgd", "check", &folder.path()]).await.with_code(1);
    assert!(run.stdout.contains("accepted") && run.stdout.matches("rejected").count() == 5, "{}", run.stdout);
    symlink(folder.path(), folder.file("back")).unwrap();
    let again = plinth(&["rgd", "check", &folder.path()]).await.with_code(1);
    assert_eq!(again.stdout, run.stdout, "a link back finds each file once");
    let utf16: Vec<u8> = std::iter::once(0xFEFF).chain(DATABASE.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    fs::write(folder.file("utf16.yaml"), utf16).unwrap();
    let run = plinth(&["rgd", "check", &folder.file("utf16.yaml")]).await.with_code(1);
    let said = format!("error     {}: cannot be read: it is UTF-16 text: save it as UTF-8", folder.file("utf16.yaml"));
    assert!(run.stdout.contains(&said), "{}", run.stdout);
    eprintln!("SHOW 03 bounded-reading 10 inputs refused by name, {} ms", began.elapsed().as_millis());
}

/// As `kubectl get rgd -o yaml` prints them.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_in_a_list_are_checked_in_their_places() {
    let item = |text: &str| format!("- {}\n", text.trim_end().replace('\n', "\n  "));
    let wrong =
        DATABASE.replace("name: database", "name: other").replace("kind: Database", "kind: Other").replace("integer", "integr");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item(DATABASE), item(&wrong));
    let folder = Folder::of(&[("list.yaml", &list)]);
    let file = folder.file("list.yaml");
    let run = plinth(&["rgd", "check", &file]).await.with_code(1);
    let line = list.lines().position(|line| line.contains("integr}")).unwrap() + 1;
    let expected = format!("accepted  {file}  database\nrejected  {file}  other\n  error     {file}:{line}:");
    assert!(run.stdout.starts_with(&expected), "{}\nis not\n{expected}", run.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gives_the_kinds_where_one_is_named() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let folder = Folder::of(&[("shop.yaml", SHOP), ("database.yaml", DATABASE)]);
    let check = ["rgd", "check", "-o", "json", "--kubeconfig", &kubeconfig, &folder.path()];
    let before = json(&plinth(&check).await.with_code(0));
    let shop = |all: &Value| all.as_array().unwrap().iter().find(|one| one["name"] == "shop").unwrap().clone();
    assert_eq!(shop(&before)["verdict"], "deferred");
    let crd = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tills.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Till", "plural": "tills"}, "versions": [{"name": "v1",
        "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
    install(&server, crd).await;
    let after = json(&plinth(&check).await.with_code(0));
    assert_eq!(shop(&after)["verdict"], "accepted", "{after:#}");
    // A name that a file gives wins over the cluster, and no cluster is asked where none is named.
    let offline = json(&plinth(&["rgd", "check", "-o", "json", &folder.path()]).await.with_code(0));
    assert_eq!(shop(&offline)["verdict"], "deferred");
}

async fn install(server: &ApiServer, crd: &str) {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition as Crd;
    let crds: kube::Api<Crd> = kube::Api::all(server.client(Identity::Admin).await);
    let crd: Crd = serde_json::from_str(crd).unwrap();
    crds.create(&kube::api::PostParams::default(), &crd).await.unwrap();
    let is_established = |crd: Option<&Crd>| {
        let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"))
    };
    while !is_established(crds.get_opt("tills.example.org").await.unwrap().as_ref()) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // Established comes a moment before the kind is served.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
}

#[test]
fn the_folders_of_these_tests_are_there() {
    assert!([CRDS, RGDS].iter().all(|folder| Path::new(folder).is_dir()));
}
