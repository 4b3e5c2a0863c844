//! The chart and the plain manifests: written from the objects that `up` installs, held against them, and run.
//!
//! `PLINTH_WRITE=1 cargo test --test spine chart::` writes the files anew.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use plinth_api::{Object, crds};
use plinth_bootstrap::{
    install::{self, Controller},
    rights,
};
use plinth_support::{ApiServer, Identity, programs};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    in_cluster::{ACCOUNT, Stage},
    plinth::plinth,
};

/// What stands in the objects where the chart has values.
const MARKS: [&str; 4] = ["IMAGE", "ARGUMENTS", "PLATFORM", "RESOURCES"];
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where nobody chose a registry.
const ANYWHERE: &str = "registry.example";

const VALUES: &str = "# Values of the chart; the defaults are what `plinth up` installs.

# The image, by digest: REF@sha256:DIGEST. It is the resource `image` of the component plinth.dev/plinth.
image: \"\"
# The Platform that it keeps; apply one of this name.
platform: default
# One of them leads, the others wait.
replicas: 2
# Further flags of `plinth controller`, such as --mirror=REGISTRY.
arguments: []
# Rights of the cluster's role besides those that every platform takes: the rules that `plinth plan` shows. `plinth grant` adds what lacks.
rules: []
";

const HEAD: &str = "{{- if ne .Release.Namespace \"plinth-system\" }}
{{- fail \"plinth's Lease and journal are in plinth-system: install it with --namespace plinth-system --create-namespace\" }}
{{- end }}
";

fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("charts")
}

/// Every file below `charts`, from the objects that `up` installs.
fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for crd in crds::of_the_chart() {
        files.insert(format!("plinth/crds/{}.yaml", crd.name), crd.yaml.to_owned());
    }
    let chart = format!(
        "apiVersion: v2\nname: plinth\ndescription: Brings up a platform cluster from one OCM component and keeps it up\n\
         type: application\nversion: {VERSION}\nappVersion: v{VERSION}\nkubeVersion: \">=1.30.0-0\"\n"
    );
    files.insert("plinth/Chart.yaml".to_owned(), chart);
    let objects = install::without_a_plan(&marked(), MARKS[2]);
    files.insert("plinth/values.yaml".to_owned(), format!("{VALUES}{}", resources(&objects)));
    // Helm makes the namespace of a release itself.
    let templates: Vec<String> = objects.iter().skip(1).map(template).collect();
    files.insert("plinth/templates/controller.yaml".to_owned(), HEAD.to_owned() + &templates.join("---\n"));
    files.insert("plinth.yaml".to_owned(), manifests());
    files
}

/// For kubectl alone: the image's registry is to be replaced.
fn manifests() -> String {
    let controller =
        Controller { image: format!("{ANYWHERE}/plinth.dev/plinth:v{VERSION}"), arguments: Vec::new(), platform: Map::new() };
    let objects = install::without_a_plan(&controller, "default");
    let head =
        format!("# plinth without a chart. Replace {ANYWHERE} by the registry that has it, and name the image by its digest.\n");
    let crds = crds::of_the_chart().into_iter().map(|crd| crd.yaml.trim_end().to_owned() + "\n");
    let documents: Vec<String> = objects.iter().take(1).map(yaml).chain(crds).chain(objects.iter().skip(1).map(yaml)).collect();
    head + &documents.join("---\n")
}

/// The controller with marks in place of values.
fn marked() -> Controller {
    Controller { image: MARKS[0].to_owned(), arguments: vec![MARKS[1].to_owned()], platform: Map::new() }
}

fn yaml(object: &Object) -> String {
    serde_saphyr::to_string(&object.0).unwrap().trim_end().to_owned() + "\n"
}

/// The document with the chart's values in it.
fn template(object: &Object) -> String {
    let mut object = object.clone();
    if let Some(container) = container(&mut object) {
        container["resources"] = MARKS[3].into();
    }
    let is_cluster_role = object.gvk().unwrap().kind == "ClusterRole";
    let mut text: String = yaml(&object).lines().map(line).collect();
    if is_cluster_role {
        text += "{{- with .Values.rules }}\n{{ toYaml . }}\n{{- end }}\n";
    }
    text
}

fn container(object: &mut Object) -> Option<&mut Value> {
    object.0.get_mut("spec")?.pointer_mut("/template/spec/containers/0")
}

fn line(line: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let replaced = match line.trim_start() {
        "image: IMAGE" => "image: {{ required \"image: REF@sha256:DIGEST\" .Values.image | quote }}".to_owned(),
        "- ARGUMENTS" => format!("{{{{- range .Values.arguments }}}}\n{indent}- {{{{ . | quote }}}}\n{indent}{{{{- end }}}}"),
        "- --platform=PLATFORM" => "- {{ printf \"--platform=%s\" .Values.platform | quote }}".to_owned(),
        "replicas: 2" => "replicas: {{ .Values.replicas }}".to_owned(),
        "resources: RESOURCES" => format!("resources: {{{{- toYaml .Values.resources | nindent {} }}}}", indent.len() + 2),
        other => other.to_owned(),
    };
    format!("{indent}{replaced}\n")
}

/// What a pod asks for, as `up` writes it.
fn resources(objects: &[Object]) -> String {
    let mut deployment = objects.last().unwrap().clone();
    let resources = container(&mut deployment).unwrap()["resources"].clone();
    format!("# What a pod asks for.\n{}\n", serde_saphyr::to_string(&json!({"resources": resources})).unwrap().trim_end())
}

/// The files in the tree are those that this code writes.
#[test]
fn the_chart_in_the_tree_is_the_one_of_the_code() {
    let written = files();
    if std::env::var_os("PLINTH_WRITE").is_some() {
        for (name, text) in &written {
            fs::create_dir_all(charts().join(name).parent().unwrap()).unwrap();
            fs::write(charts().join(name), text).unwrap();
        }
    }
    for (name, text) in &written {
        let found = fs::read_to_string(charts().join(name)).unwrap_or_default();
        assert!(found == *text, "charts/{name} is not what the code installs: PLINTH_WRITE=1 cargo test --test spine chart::");
    }
}

/// Rendered by Helm's own engine, the chart is what `up` installs, object by object.
#[test]
fn show_05_chart() {
    let image = format!("r.example/plinth@sha256:{}", "b".repeat(64));
    let rule = json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]});
    let values = json!({"image": image, "platform": "p", "arguments": ["--mirror=http://m.example:5000/x"], "rules": [rule]});
    let mut rendered = render(&charts().join("plinth"), &values, rights::NAMESPACE).unwrap();
    let definitions = rendered.drain(..crds::of_the_chart().len()).map(|object| object.name().to_owned()).collect::<Vec<_>>();
    assert!(definitions.contains(&crds::PLATFORM.name.to_owned()), "{definitions:?}");

    let arguments = vec!["--mirror=http://m.example:5000/x".to_owned()];
    let mut expected = install::without_a_plan(&Controller { image, arguments, platform: Map::new() }, "p");
    expected.remove(0);
    let role = expected.iter_mut().find(|object| object.gvk().unwrap().kind == "ClusterRole").unwrap();
    role.0["rules"].as_array_mut().unwrap().push(rule);
    assert_eq!(rendered.len(), expected.len());
    for (rendered, expected) in rendered.iter().zip(&expected) {
        assert_eq!(rendered.0, expected.0);
    }

    let render = |values: &Value, namespace: &str| render(&charts().join("plinth"), values, namespace);
    assert!(render(&json!({}), rights::NAMESPACE).unwrap_err().contains("image: REF@sha256:DIGEST"));
    assert!(render(&values, "default").unwrap_err().contains("--namespace plinth-system"));
    eprintln!(
        "SHOW 05 chart {} objects rendered by Helm's engine as `up` writes them, {} CRDs",
        expected.len(),
        definitions.len()
    );
}

/// What Helm's engine makes of a chart, a folder or packed; else what it says.
fn render(chart: &Path, values: &Value, namespace: &str) -> Result<Vec<Object>, String> {
    let folder = TempDir::with_prefix("plinth-chart-").unwrap();
    let file = folder.path().join("values.yaml");
    fs::write(&file, values.to_string()).unwrap();
    let program = programs::helm_engine().unwrap();
    let output = Command::new(program).arg(chart).arg(file).arg(namespace).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&output.stdout)).unwrap();
    Ok(documents.into_iter().filter_map(Object::from_value).collect())
}

/// plinth as a component holds its image, its chart and the kinds of that; the same files give the same bytes, and what the component's
/// chart renders installs plinth.
#[tokio::test(flavor = "multi_thread")]
async fn show_05_component() {
    let own = Distribution::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("distributions/plinth"));
    fs::write(own.file("plinth"), static_program()).unwrap();
    let (one, two) = (own.pack(&own.file("one.tar")).await, own.pack(&own.file("two.tar")).await);
    assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap(), "packed again, the same folder gives other bytes");
    let (ctf, lock) = (own.unpacked().await, plinth(&["channel", "lock", &one]).await.with_code(0));
    let lock: Value = serde_json::from_str(&lock.stdout).unwrap();
    let resources = lock["components"][0]["resources"].as_array().unwrap();
    let names: Vec<&str> = resources.iter().map(|resource| resource["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["image", "chart", "crds"], "{lock:#}");

    let (folder, chart) = (own.file("out"), own.file("plinth.tgz"));
    fs::create_dir(&folder).unwrap();
    fs::write(&chart, ctf.read(&digest_of(&resources[1])).unwrap()).unwrap();
    untar("-xzf", &chart, &folder);
    assert_eq!(texts(&folder.join("plinth")), texts(&charts().join("plinth")), "the chart is another one");
    let (kinds, crds) = (own.file("kinds"), own.file("crds.tar"));
    fs::create_dir(&kinds).unwrap();
    fs::write(&crds, ctf.read(&digest_of(&resources[2])).unwrap()).unwrap();
    untar("-xf", &crds, &kinds);
    assert_eq!(texts(&kinds), texts(&charts().join("plinth/crds")), "the kinds are others");

    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let image = format!("r.example/plinth@sha256:{}", "b".repeat(64));
    let rendered = render(&chart, &json!({"image": image}), rights::NAMESPACE).unwrap();
    kubectl(&server, &["create", "namespace", rights::NAMESPACE]);
    let file = own.file("rendered.yaml");
    fs::write(&file, rendered.iter().map(yaml).collect::<Vec<_>>().join("---\n")).unwrap();
    kubectl(&server, &["apply", "--server-side", "-f", &file.display().to_string()]);
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "-f"];
    kubectl(&server, &[&wait[..], &[&kinds.display().to_string()]].concat());
    kubectl(&server, &["get", "deployment", rights::NAME, "-n", rights::NAMESPACE]);
    eprintln!(
        "SHOW 05 component image, chart of {} files and {} kinds in one component, the same bytes twice; its chart applied to an API server",
        texts(&charts().join("plinth")).len(),
        crds::of_the_chart().len()
    );
}

/// As much of an executable as a packer looks at.
fn static_program() -> Vec<u8> {
    let mut bytes = vec![0; 50_000];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    bytes[18] = 0x3e;
    bytes
}

fn digest_of(resource: &Value) -> String {
    resource["digest"].as_str().unwrap().to_owned()
}

/// Every file below a folder, by its path.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(texts(&path).into_iter().map(|(below, text)| (format!("{name}/{below}"), text)));
        } else {
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    found
}

fn untar(how: &str, archive: &Path, into: &Path) {
    assert!(Command::new("tar").arg(how).arg(archive).arg("-C").arg(into).status().unwrap().success());
}

fn kubectl(server: &ApiServer, arguments: &[&str]) {
    let mut command = Command::new(programs::server("kubectl").unwrap());
    let output = command.arg("--kubeconfig").arg(server.kubeconfig(Identity::Admin)).args(arguments).output().unwrap();
    assert!(output.status.success(), "kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
}

/// Applied by kubectl, the manifests are enough for the controller to be ready: by its own role, with no Platform there yet.
#[tokio::test(flavor = "multi_thread")]
async fn show_05_manifests() {
    let stage = Stage::set().await;
    let client = stage.world.client().await;
    kubectl(&stage.world.server, &["apply", "--server-side", "-f", &charts().join("plinth.yaml").display().to_string()]);
    let mut pod = stage.start_pod(&client).await;
    pod.until_ready().await;
    let events = stage.audit().events().unwrap();
    let own: Vec<_> = events.iter().filter(|event| event.user == ACCOUNT).collect();
    let refused: Vec<_> = own.iter().filter(|event| event.code == 403).map(|event| &event.uri).collect();
    assert!(!own.is_empty() && refused.is_empty(), "{refused:?}");
    eprintln!("SHOW 05 manifests ready after kubectl apply, {} requests by its role, 0 refused", own.len());
}
