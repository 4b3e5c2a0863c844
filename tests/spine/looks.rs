//! The terminal view of the real binary on a pseudo-terminal: every way in and out leaves the terminal as it was.

use std::{
    net::TcpListener,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use futures::StreamExt;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use plinth_engine::naming::keys;
use plinth_support::Identity;
use portable_pty::CommandBuilder;
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    plinth::{Run, plinth},
    terminal::{LEFT, Screen},
    world::World,
};

/// A recorded run of the sample.
pub(crate) const JOURNAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures/sample.jsonl");

fn replay(environment: &[(&str, &str)], arguments: &[&str]) -> Screen {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plinth"));
    command.args(["replay", JOURNAL, "--speed", "100000"]);
    command.args(arguments);
    command.env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR");
    environment.iter().for_each(|(name, value)| command.env(name, value));
    Screen::start(command)
}

/// Whether an escape sequence sets a colour.
fn has_colour(bytes: &str) -> bool {
    let of_colour = |code: &str| code.parse::<u8>().is_ok_and(|code| matches!(code, 30..=38 | 40..=48 | 90..=107));
    let styles = bytes.split("\u{1b}[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        rest[end..].starts_with('m').then_some(&rest[..end])
    });
    styles.into_iter().any(|style| style.split([';', ':']).any(of_colour))
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_pty() {
    let mut ways = 0;
    let mut screen = replay(&[], &[]);
    screen.until_shows("DONE").await;
    screen.press("?");
    screen.until_shows("unfold").await;
    screen.press("?");
    screen.press("q");
    assert_eq!(screen.end().await, 0, "it ends as the run did");
    ways += 1;

    let mut screen = replay(&[], &[]);
    screen.until_shows("[2 TREE]").await;
    signal("-TERM", screen.process());
    screen.end().await;
    ways += 1;

    let mut shell = CommandBuilder::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    shell.env("PS1", "ready> ");
    shell.env("TERM", "xterm-256color");
    let mut screen = Screen::start(shell);
    screen.until_shows("ready> ").await;
    screen.press(&format!("'{}' replay '{JOURNAL}' --speed 100000\n", env!("CARGO_BIN_EXE_plinth")));
    screen.until_shows("DONE").await;
    screen.press("\u{1a}");
    screen.until_shows("Stopped").await;
    screen.press("fg\n");
    screen.until_shows("DONE").await;
    screen.press("q");
    screen.until_shows("Stopped").await;
    screen.press("exit\n");
    assert_eq!(screen.end().await, 0);
    ways += 1;
    let mut screen = replay(&[("PLINTH_TEST_PANIC", "1")], &[]);
    screen.until_shows("DONE").await;
    screen.press("\u{12}");
    assert_eq!(screen.end().await, 70, "a panic is a defect of ours");
    let bytes = screen.bytes();
    assert!(
        bytes[bytes.rfind(LEFT).unwrap()..].contains("PLINTH_TEST_PANIC"),
        "what went wrong is said after the screen: {bytes}"
    );
    ways += 1;
    eprintln!("SHOW 06 pty {ways} ways out (q, SIGTERM, ctrl-z and fg, a panic), each leaves the terminal sane");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_colour_there_is_no_colour_at_all() {
    let mut coloured = replay(&[], &[]);
    coloured.until_shows("DONE").await;
    assert!(has_colour(&coloured.bytes()), "the check finds colours where there are some");
    coloured.press("q");
    coloured.end().await;
    let mut insisting = replay(&[("NO_COLOR", "1")], &["--color", "always"]);
    insisting.until_shows("DONE").await;
    insisting.press("q");
    insisting.end().await;
    assert!(has_colour(&insisting.bytes()), "what was said on the command line counts more than the environment");
    for (environment, arguments) in [([("NO_COLOR", "1")].as_slice(), [].as_slice()), (&[], &["--color", "never"])] {
        let mut screen = replay(environment, arguments);
        screen.until_shows("DONE").await;
        screen.press("q");
        screen.end().await;
        assert!(!has_colour(&screen.bytes()), "{environment:?} {arguments:?}: {:?}", screen.bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_cannot_be_drawn_on_gets_lines_or_a_message() {
    for (environment, arguments) in
        [([("TERM", "dumb")].as_slice(), [].as_slice()), (&[("TERM", "no-such-terminal")], &[]), (&[], &["--plain"])]
    {
        let mut screen = replay(environment, arguments);
        assert_eq!(screen.exit().await, 0);
        let bytes = screen.bytes();
        assert!(bytes.contains("started  up") && !bytes.contains('\u{1b}'), "{environment:?}: {bytes}");
    }
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plinth"));
    command.args(["up", "nothing.tgz"]);
    command.env("TERM", "no-such-terminal");
    let mut screen = Screen::start(command);
    assert_eq!(screen.exit().await, 64);
    assert!(screen.bytes().contains("TERM=no-such-terminal"), "{}", screen.bytes());
}

/// A server that takes connections and never answers.
pub(crate) fn silent_server(folder: &Path) -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let kubeconfig = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: silent\nclusters: [{{name: silent, cluster: {{server: \"{server}\"}}}}]\n\
         contexts: [{{name: silent, context: {{cluster: silent, user: nobody}}}}]\nusers: [{{name: nobody, user: {{}}}}]\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    (listener, kubeconfig.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_hung() {
    let folder = TempDir::with_prefix("plinth-silent-").unwrap();
    let (_listener, kubeconfig) = silent_server(folder.path());
    let mut screen = Screen::open(&["dash", "--kubeconfig", &kubeconfig]);
    screen.until_shows("[2 TREE]").await;
    let started = Instant::now();
    screen.press("?");
    screen.until_shows("unfold").await;
    let answered = started.elapsed();
    screen.press("?");
    screen.press("q");
    assert_eq!(screen.end().await, 0);
    // The server answers nothing for half a minute, if ever; a busy machine may take some time to draw.
    assert!(answered < Duration::from_secs(5), "a key took {answered:?}");
    eprintln!("SHOW 06 hung a key was answered in {} ms while the API server answered nothing", answered.as_millis());
}

/// Both kubeconfigs count, as for kubectl; the first one says which context is the current one.
#[tokio::test(flavor = "multi_thread")]
async fn a_dashboard_looks_at_another_cluster_and_back() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let folder = TempDir::with_prefix("plinth-silent-").unwrap();
    let (_listener, silent) = silent_server(folder.path());
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plinth"));
    command.arg("dash");
    command.env("TERM", "xterm-256color");
    command.env("KUBECONFIG", format!("{silent}:{}", world.kubeconfig()));
    let mut screen = Screen::start(command);
    let first = screen.until_shows("reading the cluster").await;
    assert!(first.lines().next().unwrap().contains("silent"), "the header says the context:\n{first}");
    let written = world.writes();

    screen.press("C");
    let offered = screen.until_shows("shown now").await;
    let context = Identity::Admin.name();
    assert!(offered.contains(context), "both contexts are offered:\n{offered}");
    screen.press(&format!("{context}\r"));
    let there = screen.until_shows("OpenMCPOp").await;
    assert!(there.lines().next().unwrap().contains(context) && !there.contains("silent"), "{there}");

    screen.press("?");
    screen.until_shows("watches at the API server").await;
    screen.press("?");

    screen.press("C");
    screen.until_shows("shown now").await;
    screen.press("silent\r");
    let back = screen.until_shows("reading the cluster").await;
    assert!(!back.contains("OpenMCPOp"), "nothing of the other cluster is left:\n{back}");
    screen.press("q");
    assert_eq!(screen.end().await, 0);
    assert_eq!(world.writes(), written, "looking writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_was_cut_off_replays_up_to_the_cut() {
    let folder = TempDir::with_prefix("plinth-cut-").unwrap();
    let whole = std::fs::read_to_string(JOURNAL).unwrap();
    let cut = folder.path().join("cut.jsonl");
    std::fs::write(&cut, &whole[..whole.len() * 2 / 3]).unwrap();
    let run = plinth(&["replay", &cut.display().to_string()]).await.with_code(130);
    assert!(run.stderr.contains("is cut off in line"), "{}", run.stderr);
    assert!(run.stdout.starts_with("started  up"), "{}", run.stdout);
    let last = run.stdout.lines().last().unwrap();
    assert!(last.starts_with("cut off  journal cut at line ") && last.contains(" of ") && last.contains(" ready"), "{last}");
    for output in ["json", "junit", "github"] {
        let run = plinth(&["replay", &cut.display().to_string(), "-o", output]).await.with_code(130);
        assert!(run.stdout.len() > 100, "{output}: {}", run.stdout);
        let groups = |word: &str| run.stdout.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(groups("::group::"), groups("::endgroup::"), "{output}: {}", run.stdout);
    }
    let mut screen = Screen::open(&["replay", &cut.display().to_string(), "--speed", "100000"]);
    let shown = screen.until_shows("journal cut at line").await;
    assert!(shown.lines().next().unwrap().contains("CUT OFF"), "{shown}");
    screen.press("q");
    assert_eq!(screen.end().await, 130);

    let text = std::fs::File::open(JOURNAL).unwrap();
    let piped = Command::new(env!("CARGO_BIN_EXE_plinth")).args(["replay", "-"]).stdin(text).output().unwrap();
    let told = String::from_utf8_lossy(&piped.stdout);
    assert!(piped.status.success() && told.lines().last().unwrap().starts_with("done"), "{told}");
}

/// A port on which nobody listens.
fn deaf_server(folder: &Path) -> String {
    let (listener, kubeconfig) = silent_server(folder);
    drop(listener);
    kubeconfig
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dashboard_that_reaches_nobody_says_so_at_once() {
    let folder = TempDir::with_prefix("plinth-deaf-").unwrap();
    let kubeconfig = deaf_server(folder.path());
    let mut screen = Screen::open(&["dash", "--kubeconfig", &kubeconfig]);
    let shown = screen.until_shows("no connection to").await;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["http://127.0.0.1:", "(context silent)", "refused", "retrying", "hint: C chooses another context", "NO CONNECTION"]
    {
        assert!(words.contains(part), "{part} is not on the screen:\n{shown}");
    }
    screen.press("q");
    assert_eq!(screen.end().await, 0);
}

/// The words in front have the colour of what they say, where that is asked for, and never where it is not.
#[tokio::test(flavor = "multi_thread")]
async fn lines_have_colour_where_it_is_asked_for() {
    let ask = async |flags: &[&str]| plinth(&[&["replay", JOURNAL], flags].concat()).await.with_code(0).stdout;
    let (plain, coloured) = (ask(&[]).await, ask(&["--color", "always"]).await);
    assert!(!plain.contains('\u{1b}') && has_colour(&coloured), "{coloured}");
    assert!(coloured.contains("\u{1b}[32mready\u{1b}[0m  "), "{coloured}");
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(bare + rest, plain, "colour changes no text");
    for form in ["json", "junit", "github"] {
        assert!(!ask(&["--color", "always", "-o", form]).await.contains('\u{1b}'), "{form} is for machines");
    }
    for (environment, arguments, coloured) in [
        ([].as_slice(), ["-o", "lines"].as_slice(), true),
        (&[("NO_COLOR", "1")], &["-o", "lines"], false),
        (&[("TERM", "dumb")], &[], false),
        (&[], &["--plain"], false),
    ] {
        let mut screen = replay(environment, arguments);
        assert_eq!(screen.exit().await, 0);
        assert_eq!(has_colour(&screen.bytes()), coloured, "{environment:?} {arguments:?}: {}", screen.bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_there_are_lines_and_no_view_is_said_where_it_is_asked_for() {
    let told = plinth(&["replay", JOURNAL, "-v"]).await.with_code(0).stderr;
    assert!(told.contains("lines are printed: here is no terminal"), "{told}");
}

/// The first frame waits for nobody, and where there is nothing to look at that is said as long as it is so.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_platform_says_so_and_goes_on_saying_it() {
    let server = tokio::task::spawn_blocking(plinth_support::ApiServer::start).await.unwrap().unwrap();
    let folder = TempDir::with_prefix("plinth-silent-").unwrap();
    let (_listener, silent) = silent_server(folder.path());
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plinth"));
    command.arg("dash");
    command.env("TERM", "xterm-256color");
    command.env("KUBECONFIG", format!("{silent}:{}", server.kubeconfig(Identity::Admin).display()));
    let mut screen = Screen::start(command);
    screen.until_shows("reading the cluster").await;
    screen.press("C");
    screen.until_shows("shown now").await;
    screen.press(&format!("{}\r", Identity::Admin.name()));
    screen.until_shows("there is no platform on").await;
    screen.press("j");
    let still = screen.until_shows("plinth up SOURCE brings one up").await;
    assert!(still.contains("there is no platform on"), "{still}");
    screen.press("q");
    assert_eq!(screen.end().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_was_named_has_to_be_there() {
    let folder = TempDir::with_prefix("plinth-config-").unwrap();
    let missing = folder.path().join("none.yaml");
    let run = Run::start_with(&["config", "show"], &[("PLINTH_CONFIG", &missing)]).finish().await.with_code(4);
    assert!(run.stderr.contains(&format!("PLINTH_CONFIG names {}, which does not exist", missing.display())), "{}", run.stderr);
    let mono = folder.path().join("mono.yaml");
    std::fs::write(&mono, "theme: mono\n").unwrap();
    let run = Run::start_with(&["config", "show", "--origin"], &[("PLINTH_CONFIG", &mono)]).finish().await.with_code(0);
    assert!(run.stdout.contains(&format!("theme  mono     {}", mono.display())), "{}", run.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn help_has_pages_of_its_own() {
    let codes = plinth(&["help", "exit-codes"]).await.with_code(0).stdout;
    for row in ["0     done", "3     deadline", "64    usage", "130   interrupted"] {
        assert!(codes.contains(row), "{codes}");
    }
    let index = plinth(&["help"]).await.with_code(0).stdout;
    for word in ["Usage: plinth", "exit-codes", "filter", "keys"] {
        assert!(index.contains(word), "{index}");
    }
    assert!(plinth(&["help", "dash"]).await.with_code(0).stdout.contains("--filter"));
    assert!(plinth(&["help", "keys"]).await.with_code(0).stdout.contains("why not ready"));
    let wrong = plinth(&["help", "nonsense"]).await.with_code(64).stderr;
    assert!(wrong.contains("no verb and no page nonsense") && wrong.contains("exit-codes"), "{wrong}");
}

/// Objects that a dashboard follows.
const OBJECTS: usize = 5000;

/// ConfigMaps that look as if the platform had made them.
async fn crowd(client: kube::Client) -> Api<ConfigMap> {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let make = |n: usize| {
        let api = api.clone();
        async move {
            let labels = [(keys::OWNED.to_owned(), "true".to_owned())].into();
            let metadata = ObjectMeta { name: Some(format!("crowd-{n:04}")), labels: Some(labels), ..ObjectMeta::default() };
            api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
        }
    };
    futures::stream::iter((0..OBJECTS).map(make)).buffer_unordered(32).collect::<Vec<()>>().await;
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_lists() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let crowd = crowd(world.client().await).await;
    let dash = Run::start(&["dash", "--kubeconfig", &world.kubeconfig(), "-o", "json"]);
    let until = async |what: &str, seen: &dyn Fn(&str) -> bool| {
        let started = Instant::now();
        while !seen(&dash.stdout()) {
            assert!(started.elapsed() < Duration::from_mins(2), "it never told {what}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    until("all objects", &|told| told.lines().filter(|line| line.contains("\"crowd-")).count() == OBJECTS).await;
    let audit = world.server.audit().from_now().unwrap();
    for round in 0..12 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        crowd.delete(&format!("crowd-{round:04}"), &DeleteParams::default()).await.unwrap();
    }
    until("all deletions", &|told| told.lines().filter(|line| line.contains("\"delete\"")).count() == 12).await;
    let asked = audit.events().unwrap();
    let lists = asked.iter().filter(|event| event.user == Identity::Admin.name() && event.verb == "list").count();
    assert_eq!(lists, 0, "a dashboard lists nothing after the first sync");
    eprintln!("SHOW 06 lists {lists} LIST requests in a minute on {OBJECTS} objects, 12 changes told");
}
