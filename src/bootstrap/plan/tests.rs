use plinth_api::lock::LockedComponent;
use plinth_run::{Action, Outcome};
use serde_json::{Value, json};

use super::*;
use crate::testing::{Bench, INSTANCE, LATE, PLATFORM, WORKER, component, content, crd, key, object, rgd};

/// Stages as `title: action kind/name, …`.
fn printed(plan: &Plan) -> Vec<String> {
    let change =
        |change: &plinth_run::Change| format!("{} {}/{}", change.action, change.subject.key.gvk.kind, change.subject.key.name);
    let stage = |stage: &plinth_run::Stage| {
        let changes: Vec<String> = stage.changes.iter().map(change).collect();
        format!("{}: {}", stage.title, changes.join(", "))
    };
    plan.stages.iter().map(stage).collect()
}

async fn planned(bench: &Bench) -> Planned {
    let (outcome, planned) = bench.plan().await;
    planned.unwrap_or_else(|| panic!("{outcome}: {}", bench.message()))
}

#[tokio::test(start_paused = true)]
async fn stages_follow_from_the_graphs_and_what_waits_comes_last() {
    let bench = Bench::new();
    let planned = planned(&bench).await;
    let crds = "create CustomResourceDefinition/";
    assert_eq!(
        printed(&planned.plan),
        [
            format!(
                "foundation: {crds}resourcegraphdefinitions.kro.run, {crds}graphrevisions.internal.kro.run, \
                 {crds}repositories.delivery.ocm.software, \
                 {crds}components.delivery.ocm.software, {crds}resources.delivery.ocm.software, \
                 {crds}deployers.delivery.ocm.software, {crds}discoveries.delivery.ocm.software, create Namespace/plinth-system"
            ),
            "definitions: create Repository/repo, create ResourceGraphDefinition/worker, create ResourceGraphDefinition/late, \
             create ResourceGraphDefinition/platform"
                .into(),
            "instance: create Platform/default".into(),
            "Worker, Late: create Worker/worker, create Late/late".into(),
            "2 ConfigMap: create ConfigMap/worker-config, create ConfigMap/late-note".into(),
            "Deployment: create Deployment/operator".into(),
            "deferred: Thing: defer Thing/thing".into(),
        ]
    );
    let [deferred] = planned.plan.deferred.as_slice() else { panic!("{:?}", planned.plan.deferred) };
    assert_eq!((deferred.subject.key.name.as_str(), deferred.node.as_str()), ("late", "thing"));
    assert_eq!(deferred.missing[0].to_string(), "Thing.late.example/v1");
    assert_eq!(deferred.expected_from.as_deref(), Some("Deployment.apps/default/operator"));
}

#[tokio::test(start_paused = true)]
async fn a_plan_writes_nothing_and_tells_whether_there_are_changes() {
    let bench = Bench::new();
    assert_eq!(bench.plan().await.0, Outcome::Changes);
    assert!(bench.cluster.writes().is_empty() && bench.cluster.objects().is_empty());
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let (writes, objects) = (bench.cluster.writes(), bench.cluster.objects());
    let (outcome, planned) = bench.plan().await;
    assert_eq!(outcome, Outcome::Done);
    assert_eq!((bench.cluster.writes(), bench.cluster.objects()), (writes, objects));
    let plan = planned.unwrap().plan;
    assert!(plan.changes().all(|change| change.action == Action::Unchanged), "{:#?}", printed(&plan));
    assert!(plan.deferred.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_names_its_fields_and_never_its_values() {
    let mut bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done);
    bench.settings.values = json!({"size": 7654}).as_object().unwrap().clone();
    let plan = planned(&bench).await.plan;
    let changed: Vec<_> = plan.changes().filter(|change| change.action == Action::Configure).collect();
    let fields: Vec<(&str, &[String])> = changed.iter().map(|c| (c.subject.key.gvk.kind.as_str(), &c.fields[..])).collect();
    assert_eq!(
        fields,
        [
            ("Platform", &["spec.size".to_owned()][..]),
            ("Worker", &["spec.size".to_owned()][..]),
            ("ConfigMap", &["data.size".to_owned()][..])
        ]
    );
    assert!(!serde_json::to_string(&plan).unwrap().contains("7654"));
}

#[tokio::test(start_paused = true)]
async fn values_that_do_not_fit_are_refused() {
    for (values, expect) in
        [(json!({"sizze": 1}), "sizze"), (json!({"size": "big"}), "size"), (json!({"size": {"a": 1}}), "size")]
    {
        let mut bench = Bench::new();
        bench.settings.values = values.as_object().unwrap().clone();
        assert_eq!(bench.up().await, Outcome::Refused);
        assert!(bench.message().contains(expect) && bench.message().contains("do not fit"), "{}", bench.message());
        assert!(bench.cluster.writes().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_breaks_an_installed_kind_is_refused_unless_its_author_permits_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let changed = WORKER
        .replace("size: integer | default=1", "size: string | default=\"1\"")
        .replace("string(schema.spec.size)", "schema.spec.size");
    let platform = PLATFORM.replace("size: ${schema.spec.size}", "size: ${string(schema.spec.size)}");
    let with = |worker: &str| vec![rgd("platform", &platform), rgd("worker", worker), rgd("late", LATE)];
    bench.content.rgds = with(&changed);
    bench.cluster.forget_writes();
    for verb in ["plan", "up"] {
        let outcome = if verb == "plan" { bench.plan().await.0 } else { bench.up().await };
        assert_eq!(outcome, Outcome::Refused, "{verb}: {}", bench.message());
        let message = bench.message();
        assert!(
            message.contains("ResourceGraphDefinition.kro.run/worker") && message.contains("spec.size: Type changed"),
            "{message}"
        );
        assert!(bench.state().finished.unwrap().hint.unwrap().contains("kro.run/allow-breaking-changes=true"));
        assert_eq!(bench.cluster.writes(), []);
    }
    let permitted = "  name: worker\n  annotations: {kro.run/allow-breaking-changes: \"true\"}\n";
    bench.content.rgds = with(&changed.replacen("  name: worker\n", permitted, 1));
    let planned = planned(&bench).await;
    let remark = planned.remarks.iter().find(|remark| remark.reason == "BreakingChange").expect("it is told");
    assert!(remark.message.contains("spec.size: Type changed"), "{}", remark.message);
}

/// What the loop deletes is in the plan: a member of the ApplySet that no node makes any more, and nothing else.
#[tokio::test(start_paused = true)]
async fn members_that_the_graph_does_not_make_any_more_are_deletions() {
    let mut bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let worker = key("acme.example/v1alpha1", "Worker", Some("default"), "worker");
    let set = plinth_engine::naming::applyset_id("worker", "default", "Worker", "acme.example");
    let mut instance = bench.cluster.objects()[&worker].clone();
    let annotations = json!({
        "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Deployment.apps",
        "applyset.kubernetes.io/additional-namespaces": "",
    });
    instance.metadata_mut().insert("annotations".into(), annotations);
    bench.cluster.put(&instance);
    for (name, node, manager) in [
        ("worker-config", "config", "plinth.dev/applyset"),
        ("old", "gone", "plinth.dev/applyset"),
        ("of-others", "gone", "somebody"),
    ] {
        let member = key("v1", "ConfigMap", Some("default"), name);
        let known = bench.cluster.objects().get(&member).cloned();
        let mut member = known.unwrap_or_else(|| {
            object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}))
        });
        let labels = member.metadata_mut().entry("labels").or_insert_with(|| json!({}));
        labels["applyset.kubernetes.io/part-of"] = json!(set);
        labels["kro.run/node-id"] = json!(node);
        member.metadata_mut().insert("managedFields".into(), json!([{"manager": manager, "operation": "Apply"}]));
        bench.cluster.put(&member);
    }
    let deletions = |plan: &Plan| -> Vec<String> {
        let gone = plan.changes().filter(|change| change.action == Action::Delete);
        gone.map(|change| format!("{} {}", change.subject.key.name, change.subject.node.clone().unwrap_or_default())).collect()
    };
    assert_eq!(deletions(&planned(&bench).await.plan), ["old gone"]);
    let renamed = WORKER.replace("name: worker-config", "name: worker-settings");
    bench.content.rgds = vec![rgd("platform", PLATFORM), rgd("worker", &renamed), rgd("late", LATE)];
    let plan = planned(&bench).await.plan;
    assert_eq!(deletions(&plan), ["old gone", "worker-config config"]);
    assert_eq!(plan.count(Action::Create), 1, "{:#?}", printed(&plan));
    assert_eq!(plan.stages.last().unwrap().title, "no longer made");
}

/// A file of values, and the values.
fn file(name: &str, text: &str, under: &'static str) -> (crate::ValuesFile, serde_json::Map<String, Value>) {
    let document = plinth_engine::yaml::documents(text).unwrap().remove(0);
    let values = under.split('.').filter(|field| !field.is_empty()).fold(&document.value, |value, field| &value[field]);
    let values = values.as_object().unwrap().clone();
    (crate::ValuesFile { name: name.into(), locations: document.locations, under }, values)
}

#[tokio::test(start_paused = true)]
async fn values_that_do_not_fit_say_where_they_are() {
    let flag = file("values.yaml", "ocmRepoName: repo\nsize: big\n", "");
    let platform = file("platform.yaml", "spec:\n  values:\n    other: 1\n    size: bigger\n", "spec.values");
    let shipped = INSTANCE.replace("  ocmRepoName: repo\n", "  ocmRepoName: repo\n  sort: [a]\n  size: huge\n");
    let instance = "instance of component acme.example/platform:v1.0.0";
    for (files, text, places) in [
        (vec![&flag], INSTANCE, vec!["values.yaml:2:7 spec.size: "]),
        (vec![&platform], INSTANCE, vec!["platform.yaml:3:12 spec.other: ", "platform.yaml:4:11 spec.size: "]),
        (vec![&flag, &platform], INSTANCE, vec!["platform.yaml:3:12 spec.other: ", "values.yaml:2:7 spec.size: "]),
        (vec![], shipped.as_str(), vec!["7:3 spec.sort: ", "8:9 spec.size: "]),
        (vec![&flag], shipped.as_str(), vec!["7:3 spec.sort: ", "values.yaml:2:7 spec.size: "]),
        (vec![], &INSTANCE.replace("ocmRepoName: repo", "ocmRepoName: 7"), vec!["6:16 spec.ocmRepoName: "]),
    ] {
        let mut bench = Bench::new();
        bench.content.instances = vec![(component("platform"), text.into())];
        for (file, values) in files.iter().rev() {
            bench.settings.values.extend(values.clone());
            bench.settings.values_files.insert(0, file.clone());
        }
        assert_eq!(bench.plan().await.0, Outcome::Refused);
        for place in places {
            let place =
                if place.starts_with(|c: char| c.is_ascii_digit()) { format!("{instance}: {place}") } else { place.into() };
            assert!(bench.message().contains(&place), "no {place}:\n{}", bench.message());
        }
        assert!(bench.message().starts_with("the values do not fit Platform.acme.example/v1alpha1:"), "{}", bench.message());
    }
}

#[tokio::test(start_paused = true)]
async fn graphs_that_do_not_compile_are_refused_with_their_place() {
    let cases = [
        ("${config.metadata.name}", "${config.metadata.name +}", ""),
        ("${config.metadata.name}", "${nothing.metadata.name}", "nothing"),
        ("name: worker-config", "name: ${deployment.metadata.name}", "deployment"),
    ];
    for (from, to, expect) in cases {
        let mut bench = Bench::new();
        let text = crate::testing::WORKER.replace(from, to);
        assert_ne!(text, crate::testing::WORKER);
        bench.content.rgds[1].text = text;
        assert_eq!(bench.up().await, Outcome::Refused);
        let message = bench.message();
        assert!(message.contains("rgd of component acme.example/worker:v1.0.0") && message.contains(expect), "{message}");
        assert!(bench.cluster.writes().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn components_outside_the_lock_are_refused_and_late_ones_are_named() {
    let template = |component: &str, semver: &str| {
        LATE.replace("apiVersion: late.example/v1", "apiVersion: delivery.ocm.software/v1alpha1").replace("kind: Thing", "kind: Component").replace(
            "name: thing\n        spec: {}",
            &format!(
                "name: thing\n        spec: {{repositoryRef: {{name: repo}}, component: {component}, semver: '{semver}', interval: 1m}}"
            ),
        )
    };
    let check = |component: &str, semver: &str| {
        let mut bench = Bench::new();
        bench.content.rgds[2].text = template(component, semver);
        let there = LockedComponent { name: "acme.example/there".into(), version: "v1.2.0".into(), ..LockedComponent::default() };
        bench.content.lock.components.push(there);
        bench
    };
    for (component, semver) in
        [("acme.example/gone", "v1.2.0"), ("acme.example/there", "v1.3.0"), ("acme.example/there", ">=2.0.0")]
    {
        let bench = check(component, semver);
        assert_eq!(bench.up().await, Outcome::Refused);
        let message = bench.message();
        assert!(message.contains(&format!("node thing of late asks for component {component} {semver}")), "{message}");
        assert!(bench.cluster.writes().is_empty());
    }
    for semver in ["v1.2.0", "1.2.0", ">=1.0.0"] {
        assert!(planned(&check("acme.example/there", semver)).await.remarks.is_empty());
    }
    let late = planned(&check("acme.example/there", "${note.data.version}")).await.remarks;
    assert_eq!(late[0].reason, "Late");
    assert!(late[0].message.contains("Component.delivery.ocm.software/default/thing"), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_made_is_not_taken() {
    let rgd_key = key("kro.run/v1alpha1", "ResourceGraphDefinition", None, "worker");
    let foreign = |bench: &Bench| {
        for crd in plinth_api::crds::platform() {
            bench.cluster.put(&crd);
        }
        bench.cluster.put(&object(json!({
            "apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition",
            "metadata": {"name": "worker"}, "spec": {"schema": {"kind": "Other"}},
        })));
    };
    let mut bench = Bench::new();
    foreign(&bench);
    let before = bench.cluster.objects();
    assert_eq!(bench.up().await, Outcome::Refused);
    assert!(bench.message().contains("ResourceGraphDefinition.kro.run/worker belongs to somebody else"), "{}", bench.message());
    assert_eq!(bench.cluster.objects(), before);
    bench.settings.take_over = true;
    let plan = planned(&bench).await.plan;
    let change = plan.changes().find(|change| change.subject.key == rgd_key).unwrap();
    assert_eq!(change.action, Action::Configure);
}

/// A platform that got another name is another one.
#[tokio::test(start_paused = true)]
async fn what_another_platform_has_is_not_taken_whatever_is_asked_for() {
    let mut bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done);
    let before = bench.cluster.objects();
    bench.settings.platform = "sample".into();
    for take_over in [false, true] {
        bench.settings.take_over = take_over;
        assert_eq!(bench.up().await, Outcome::Refused, "{take_over}");
        assert!(bench.message().contains("belongs to platform default, and this is platform sample"), "{}", bench.message());
        let hint = bench.state().finished.unwrap().hint.unwrap();
        assert!(hint.contains("metadata.name: default") && hint.contains("plinth down --platform default --apply"), "{hint}");
        assert_eq!(bench.cluster.objects(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_somebody_else_made_is_not_taken() {
    let mut bench = Bench::new();
    let theirs = |labels: Value| {
        object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"keep": "me"},
            "metadata": {
                "name": "worker-config", "namespace": "default", "labels": labels,
                "managedFields": [{"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:data": {"f:keep": {}}}}],
            },
        }))
    };
    bench.cluster.put(&theirs(json!({})));
    let before = bench.cluster.objects();
    assert_eq!(bench.up().await, Outcome::Refused);
    assert!(bench.message().contains("ConfigMap/default/worker-config belongs to kubectl-create"), "{}", bench.message());
    assert_eq!(bench.cluster.objects(), before);

    bench.settings.take_over = true;
    let plan = planned(&bench).await.plan;
    let change = plan.changes().find(|change| change.subject.key.name == "worker-config").unwrap();
    assert_eq!(
        (change.action, change.note.as_deref()),
        (Action::Configure, Some("belongs to kubectl-create and is taken over; loses data.keep"))
    );

    let mut kro =
        object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kro", "namespace": "kro-system",
        "labels": {"app.kubernetes.io/name": "kro"}}, "spec": {"replicas": 1}}));
    bench.cluster.put(&kro);
    bench.cluster.put(&theirs(json!({"kro.run/owned": "true", "app.kubernetes.io/managed-by": "kro"})));
    assert_eq!(bench.up().await, Outcome::Refused, "two controllers must not write one object");
    assert!(bench.message().contains("Deployment.apps/kro-system/kro of kro runs in this cluster"), "{}", bench.message());
    kro.0["spec"]["replicas"] = 0.into();
    bench.cluster.put(&kro);
    let plan = planned(&bench).await.plan;
    let change = plan.changes().find(|change| change.subject.key.name == "worker-config").unwrap();
    assert_eq!(change.note.as_deref(), Some("belongs to an instance of kro and is taken over; loses data.keep"));
    bench.settings.take_over = false;
    assert_eq!(bench.up().await, Outcome::Refused);
    assert!(bench.message().contains("belongs to an instance of kro"), "{}", bench.message());
}

/// One `down` would take both.
#[tokio::test(start_paused = true)]
async fn another_distribution_does_not_come_up_beside_one_that_is_there() {
    let bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let mut other = Bench::new();
    other.cluster.clone_from(&bench.cluster);
    let root = PLATFORM.replace("kind: Platform\n", "kind: Other\n").replace("name: platform\n", "name: other\n");
    other.content = content(vec![rgd("other", &root), rgd("worker", WORKER), rgd("late", LATE)]);
    other.content.instances = vec![(component("other"), INSTANCE.replace("kind: Platform", "kind: Other"))];
    let before = other.cluster.objects();
    assert_eq!(other.up().await, Outcome::Refused);
    assert!(other.message().contains("platform default is Platform.acme.example"), "{}", other.message());
    assert_eq!(other.cluster.objects(), before);
}

#[tokio::test(start_paused = true)]
async fn kinds_that_others_serve_are_left_as_they_are() {
    let bench = Bench::new();
    let theirs = plinth_api::crds::platform();
    for crd in &theirs {
        bench.cluster.put(crd);
    }
    let before = bench.cluster.objects();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    for (key, object) in before {
        assert_eq!(bench.cluster.objects()[&key], object);
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_a_repository_that_a_cluster_can_read_is_refused() {
    let mut bench = Bench::new();
    bench.settings.repository = None;
    assert_eq!(bench.up().await, Outcome::Refused);
    assert!(bench.message().contains("Repository repo"), "{}", bench.message());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_a_graph_brings_as_a_crd_is_expected_from_there() {
    let mut bench = Bench::new();
    let crd = serde_json::to_string(&crd("late.example", "Thing")).unwrap();
    let node = format!("    - id: crd\n      template: {crd}\n");
    bench.content.rgds[1].text.push_str(&node);
    let plan = planned(&bench).await.plan;
    let from = plan.deferred[0].expected_from.as_deref();
    assert_eq!(from, Some("CustomResourceDefinition.apiextensions.k8s.io/things.late.example"));
}

#[tokio::test(start_paused = true)]
async fn what_reads_a_deferred_node_waits_with_it() {
    let mut bench = Bench::new();
    let after = "    - id: after\n      template:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata:\n          \
                 name: after\n        data:\n          thing: ${thing.metadata.name}\n";
    bench.content.rgds[2].text.push_str(after);
    let stages = printed(&planned(&bench).await.plan);
    assert_eq!(stages[6..], ["deferred: Thing: defer Thing/thing", "deferred: ConfigMap: defer ConfigMap/after"]);
}

#[tokio::test(start_paused = true)]
async fn namespace_and_scope_are_followed() {
    let mut bench = Bench::new();
    bench.settings.namespace = Some("team".into());
    let plan = planned(&bench).await.plan;
    let namespaces: BTreeSet<Option<&str>> = plan.changes().map(|change| change.subject.key.namespace.as_deref()).collect();
    assert_eq!(namespaces, BTreeSet::from([None, Some("team")]));
    assert!(plan.changes().any(|change| change.subject.key == key("v1", "Namespace", None, "team")));
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_lives_in_another_namespace_stays_there() {
    let mut bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    bench.cluster.forget_writes();
    bench.settings.namespace = Some("other".into());
    let instance = key("acme.example/v1alpha1", "Platform", Some("default"), "default");
    let repository = key("delivery.ocm.software/v1alpha1", "Repository", Some("default"), "repo");
    for object in [&instance, &repository] {
        let before = bench.cluster.objects();
        assert_eq!(bench.plan().await.0, Outcome::Refused);
        assert!(bench.message().contains(&format!("lives in namespace default ({object})")), "{}", bench.message());
        assert_eq!(bench.up().await, Outcome::Refused);
        assert_eq!((bench.cluster.writes(), bench.cluster.objects()), (Vec::new(), before));
        // Without its instance it was only begun there, and goes on there.
        bench.cluster.take(object);
    }
    assert_eq!(bench.plan().await.0, Outcome::Changes, "nothing is there any more: {}", bench.message());
}

#[tokio::test(start_paused = true)]
async fn names_that_no_server_takes_are_refused_by_the_plan() {
    let values = |name: &str| json!({"ocmRepoName": name}).as_object().unwrap().clone();
    let long = "n".repeat(64);
    for (namespace, repository, expect) in [
        (Some("BAD NS"), "repo", "Namespace \"BAD NS\""),
        (Some(""), "repo", "Namespace \"\""),
        (Some("a.b"), "repo", "Namespace \"a.b\""),
        (Some(long.as_str()), "repo", "Namespace \"nnn"),
        (None, "Bad_Repo", "Repository \"Bad_Repo\""),
        (None, "", "Repository \"\""),
        (None, "a..b", "Repository \"a..b\""),
    ] {
        let mut bench = Bench::new();
        bench.settings.namespace = namespace.map(str::to_owned);
        bench.settings.values = values(repository);
        assert_eq!(bench.plan().await.0, Outcome::Refused, "{namespace:?} {repository}");
        let message = bench.message();
        assert!(message.contains(expect) && message.contains("is no name that Kubernetes takes"), "{message}");
        assert_eq!(bench.up().await, Outcome::Refused);
        assert!(bench.cluster.writes().is_empty());
    }
    let mut bench = Bench::new();
    (bench.settings.namespace, bench.settings.values) = (Some("a-1".into()), values("r.e-p.o1"));
    assert_eq!(bench.plan().await.0, Outcome::Changes, "{}", bench.message());
}

/// What `null` in values takes away has to go from a platform that has it.
#[test]
fn a_field_that_we_set_and_no_longer_want_is_a_change() {
    let platform = json!({"apiVersion": "acme.example/v1alpha1", "kind": "Platform", "spec": {"a": {"b": 1}},
        "metadata": {"name": "p", "labels": {"plinth.dev/platform": "default"}}});
    let wanted = Wanted {
        key: key("acme.example/v1alpha1", "Platform", None, "p"),
        object: object(platform.clone()),
        digest: String::new(),
        step: wanted::Step::Instance,
    };
    let standing = |manager: &str| {
        let mut live = platform.clone();
        live["spec"] = json!({"a": {"b": 1, "c": 2}, "size": 5, "mode": "x"});
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:plinth.dev/platform": {}}},
            "f:spec": {"f:a": {"f:b": {}, "f:c": {}}, "f:size": {}}});
        live["metadata"]["managedFields"] = json!([
            {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields},
            {"manager": manager, "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {"f:x": {}}}},
            {"manager": "other", "operation": "Apply", "fieldsV1": {"f:spec": {"f:mode": {}}}},
        ]);
        super::standing(&wanted, Some(&object(live)), &Settings::default()).unwrap()
    };
    let ours = standing("plinth.dev/plinth");
    assert_eq!((ours.action, ours.fields), (Action::Configure, vec!["spec.a.c".to_owned(), "spec.size".to_owned()]));
    assert_eq!(standing("kubectl").action, Action::Unchanged);
}

#[tokio::test(start_paused = true)]
async fn an_archive_is_not_handed_over_to_a_cluster() {
    let mut bench = Bench::new();
    bench.settings.repository = Some(json!({"type": "CommonTransportFormat", "filePath": "x.tgz"}));
    assert_eq!(bench.plan().await.0, Outcome::Changes);
    bench.settings.hands_over = true;
    assert_eq!(bench.up().await, Outcome::Refused);
    assert!(bench.message().contains("--mirror"), "{}", bench.message());
    assert!(bench.cluster.writes().is_empty());
}

#[test]
fn a_distribution_of_one_component_needs_no_lock_entry_of_its_own() {
    let content = content(vec![rgd("late", LATE)]);
    assert_eq!(crate::distribution::choose(&content, None).unwrap().component, component("late"));
}

const IMAGE: &str = "ghcr.example/acme/operator:v1";

/// The platform on a mirror: its operator's image is described as `access`, another one is described and used by nobody.
fn on_a_mirror(access: serde_json::Value) -> Bench {
    use plinth_api::lock::LockedResource;
    use plinth_releasechannel::{RepositoryRef, localization::Localization};

    let mut bench = Bench::new();
    let image = "        spec:\n          image: ghcr.example/acme/operator:v1\n          sidecarImage: quay.example/stray:1\n          config:";
    bench.content.rgds[1].text = crate::testing::WORKER.replace("        spec:\n          config:", image);
    let resource = |name: &str, access: serde_json::Value| LockedResource {
        name: name.into(),
        kind: "ociImage".into(),
        digest: Some(format!("sha256:{}", "a".repeat(64))),
        access,
        ..LockedResource::default()
    };
    let spare = json!({"type": "ociArtifact", "imageReference": "ghcr.example/acme/spare:v1"});
    bench.content.lock.components[1].resources = vec![resource("operator", access), resource("spare", spare)];
    let mirror = RepositoryRef::parse("mirror.example/site").unwrap();
    bench.content.images = Arc::new(Localization::new(&bench.content.lock, None, &mirror));
    bench
}

#[tokio::test(start_paused = true)]
async fn images_are_the_mirrors_and_leaks_and_idle_ones_are_told() {
    let bench = on_a_mirror(json!({"type": "ociArtifact", "imageReference": IMAGE}));
    let planned = planned(&bench).await;
    let rgd = planned.wanted.iter().find(|wanted| wanted.key.name == "worker" && wanted.key.gvk.kind.starts_with("Resource"));
    let text = serde_json::to_string(&rgd.unwrap().object).unwrap();
    let mirrored = format!("mirror.example/site/acme/operator:v1@sha256:{}", "a".repeat(64));
    assert!(text.contains(&mirrored) && !text.contains("ghcr.example"), "{text}");
    let reasons: Vec<&str> = planned.remarks.iter().map(|remark| remark.reason).collect();
    assert_eq!(reasons, ["Leak", "Unused"]);
    let (leak, unused) = (&planned.remarks[0].message, &planned.remarks[1].message);
    assert!(leak.contains("quay.example/stray:1") && leak.contains("rgd of component acme.example/worker:v1.0.0"), "{leak}");
    assert!(unused.contains("spare of acme.example/worker:v1.0.0") && !unused.contains("operator of"), "{unused}");
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let told =
        |reason: &str| bench.count(|kind| matches!(kind, plinth_run::EventKind::Warning { reason: told, .. } if told == reason));
    assert_eq!((told("Leak"), told("Unused")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn values_are_localized_and_another_mirror_is_another_plan() {
    let mut bench = on_a_mirror(json!({"type": "ociArtifact", "imageReference": IMAGE}));
    let text = &mut bench.content.rgds[0].text;
    *text = text.replace("      size: integer", "      image: string\n      size: integer");
    bench.settings.values = json!({"image": IMAGE}).as_object().unwrap().clone();
    let planned_once = planned(&bench).await;
    let instance = &planned_once.wanted.last().unwrap().object;
    assert!(instance.at(&["spec", "image"]).unwrap().as_str().unwrap().starts_with("mirror.example/site/"));
    bench.content.images = Arc::new(plinth_releasechannel::localization::Localization::describing(&bench.content.lock));
    assert_ne!(planned(&bench).await.plan.inputs, planned_once.plan.inputs);
}

#[tokio::test(start_paused = true)]
async fn a_mirror_without_an_image_is_refused_before_anything_is_written() {
    let packed = json!({"type": "localBlob", "localReference": format!("sha256:{}", "b".repeat(64)),
        "mediaType": "application/vnd.oci.image.manifest.v1+tar+gzip", "referenceName": "acme/operator:v1"});
    let bench = on_a_mirror(packed);
    assert_eq!(bench.up().await, Outcome::Refused);
    let message = bench.message();
    assert!(message.contains("mirror.example/site") && message.contains("operator of acme.example/worker:v1.0.0"), "{message}");
    assert!(bench.cluster.writes().is_empty());
    let failed = |kind: &plinth_run::EventKind| matches!(kind, plinth_run::EventKind::CheckFinished { id, verdict: plinth_run::CheckVerdict::Failed, .. } if id.to_string() == crate::preflight::IMAGES);
    assert_eq!(bench.count(failed), 1);
}

/// Images that delivery objects ask for are in use, by whatever path of references.
#[tokio::test(start_paused = true)]
async fn what_a_resource_object_asks_for_is_used() {
    let mut bench = on_a_mirror(json!({"type": "ociArtifact", "imageReference": IMAGE}));
    let template = "    - id: component\n      template:\n        apiVersion: delivery.ocm.software/v1alpha1\n        kind: Component\n        metadata: {name: parts}\n        spec: {repositoryRef: {name: repo}, component: acme.example/platform, semver: v1.0.0, interval: 1m}\n    - id: spare\n      template:\n        apiVersion: delivery.ocm.software/v1alpha1\n        kind: Resource\n        metadata: {name: spare}\n        spec: {componentRef: {name: parts}, resource: {byReference: {resource: {name: spare}, referencePath: [{name: x}]}}}\n";
    bench.content.rgds[1].text.push_str(template);
    let planned = planned(&bench).await;
    let unused: Vec<&Remark> = planned.remarks.iter().filter(|remark| remark.reason == "Unused").collect();
    assert_eq!(unused, [] as [&Remark; 0]);
}

/// What a Deployer will apply is looked through for images like everything else, and names them as used.
#[tokio::test(start_paused = true)]
async fn images_in_manifests_of_deployers_are_in_the_plan() {
    let mut bench = on_a_mirror(json!({"type": "ociArtifact", "imageReference": IMAGE}));
    let manifest = plinth_api::lock::LockedResource { name: "manifest".into(), ..Default::default() };
    bench.content.lock.components[1].resources.push(manifest);
    let delivery = "apiVersion: delivery.ocm.software/v1alpha1\n        kind";
    let template = format!(
        "    - id: component\n      template:\n        {delivery}: Component\n        metadata: {{name: parts}}\n        spec: {{repositoryRef: {{name: repo}}, component: acme.example/worker, semver: v1.0.0, interval: 1m}}\n    - id: text\n      template:\n        {delivery}: Resource\n        metadata: {{name: text}}\n        spec: {{componentRef: {{name: parts}}, resource: {{byReference: {{resource: {{name: manifest}}}}}}}}\n    - id: apply\n      template:\n        {delivery}: Deployer\n        metadata: {{name: apply}}\n        spec: {{resourceRef: {{name: text, namespace: default}}}}\n"
    );
    bench.content.rgds[1].text.push_str(&template);
    let distribution = crate::distribution::choose(&bench.content, None).unwrap();
    let kinds = super::kinds(&distribution, &bench.settings);
    let served = bench.ports().schemas.ensure(&kinds).await.unwrap();
    let wanted = super::manifests(&bench.content, &distribution, &bench.settings, served);
    let worker = plinth_releasechannel::ComponentVersion::new("acme.example/worker", "v1.0.0");
    assert_eq!(wanted.into_iter().collect::<Vec<_>>(), [(worker.clone(), "manifest".to_owned())]);

    let pod = json!({"kind": "Pod", "spec": {"containers": [{"image": "quay.example/miner:1"}, {"image": "ghcr.example/acme/spare:v1"}]}});
    bench.content.manifests = [((worker, "manifest".to_owned()), vec![pod])].into();
    let planned = planned(&bench).await;
    let told = |reason: &str| {
        planned.remarks.iter().filter(|remark| remark.reason == reason).map(|remark| remark.message.as_str()).collect::<Vec<_>>()
    };
    assert!(
        told("Leak")
            .iter()
            .any(|leak| leak.contains("quay.example/miner:1") && leak.contains("the resource manifest of acme.example/worker")),
        "{:?}",
        told("Leak")
    );
    assert_eq!(told("Unused"), [""; 0]);
}
