use super::*;

fn of(text: &str) -> Config {
    let mut config = Config::defaults();
    config.take_file(text, Path::new("config.yaml"));
    config
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_defaults() {
    let mut config = of("apiVersion: plinth.dev/v1alpha1\nkind: Config\ncolor: always\ntheme: light\n");
    assert_eq!((config.problem.clone(), config.palette()), (None, Theme::Light));
    config.take_environment(|name| (name == "NO_COLOR").then(|| "1".to_owned()));
    assert_eq!(config.palette(), Theme::Mono);
    let origins: Vec<&str> = config.rows().into_iter().map(|(_, _, origin)| origin).collect();
    assert_eq!(origins, ["NO_COLOR", "config.yaml", "default", "default"]);
}

#[test]
fn a_broken_file_is_named_with_line_and_column_and_the_rest_of_it_counts() {
    let config = of("why: false\ntheme: pink\n");
    let problem = config.problem.unwrap();
    assert!(problem.starts_with("config.yaml:2:8 ") && problem.contains("dark, light, mono"), "{problem}");
    assert_eq!((config.theme.value, config.why.value), (Background::Dark, false));

    let problem = of("colour: never\n").problem.unwrap();
    assert!(problem.starts_with("config.yaml:1:9 ") && problem.contains("did you mean color?"), "{problem}");

    let config = of("color: [never\n");
    let problem = config.problem.clone().unwrap();
    assert!(problem.starts_with("config.yaml:") && problem.contains("defaults are used"), "{problem}");
    assert_eq!(config.rows(), Config::defaults().rows());
}

#[test]
fn the_mono_theme_has_no_colour_whatever_is_said_of_colour() {
    let config = of("theme: mono\ncolor: always\n");
    assert_eq!((config.problem.clone(), config.palette()), (None, Theme::Mono));
    assert!(config.rows().contains(&("theme", "mono".to_owned(), "config.yaml")));
}

#[test]
fn a_file_of_something_else_is_said_to_be_that() {
    assert!(of("kind: Platform\n").problem.unwrap().contains("not Config"));
    assert!(of("- a\n").problem.unwrap().contains("a list of settings"));
    assert_eq!(of("").problem, None);
}

#[test]
fn the_file_is_where_the_user_keeps_such_files() {
    let set = |pairs: &'static [(&str, &str)]| {
        move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    assert_eq!(file(set(&[("HOME", "/h")])), Some(PathBuf::from("/h/.config/plinth/config.yaml")));
    assert_eq!(file(set(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")])), Some(PathBuf::from("/x/plinth/config.yaml")));
    assert_eq!(file(set(&[("PLINTH_CONFIG", "/p.yaml"), ("HOME", "/h")])), Some(PathBuf::from("/p.yaml")));
    assert_eq!(file(set(&[])), None);
}

#[test]
fn the_schema_names_every_setting() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/config.v1alpha1.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let named: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut keys = KEYS.to_vec();
    keys.sort_unstable();
    assert_eq!(named, keys);
    for (key, word) in [("color", "always"), ("theme", "light")] {
        assert!(schema["properties"][key]["enum"].as_array().unwrap().contains(&Value::from(word)), "{key}");
    }
}
