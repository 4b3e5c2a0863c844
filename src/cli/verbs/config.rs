//! `plinth config show`: every setting, and where it comes from.

use plinth_run::Outcome;
use serde_json::{Map, Value, json};

use crate::{
    args::{Global, Output},
    config::Config,
    out::Out,
};

/// Runs `plinth config show`.
pub(crate) fn show(global: &Global, origin: bool, output: Output, out: Out) -> Outcome {
    let config = Config::load(global);
    config.tell(out);
    match output {
        Output::Human => {
            for (name, value, from) in config.rows() {
                let from = if origin { format!("  {from}") } else { String::new() };
                out.data(format!("{name:<6} {value:<7}{from}").trim_end());
            }
        }
        Output::Json => {
            let setting = |(name, value, from): (&str, String, &str)| (name.to_owned(), json!({"value": value, "origin": from}));
            let settings: Map<String, Value> = config.rows().into_iter().map(setting).collect();
            out.data(&Value::Object(settings).to_string());
        }
    }
    Outcome::Done
}
