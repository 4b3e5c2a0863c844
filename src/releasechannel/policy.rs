//! What a Platform asks of signatures and trust, beside what was asked for directly (contracts 20).

use std::path::Path;

use plinth_api::platform::PlatformSpec;
use serde_json::Value;

use crate::error::ResolveError;
use crate::options::Options;

/// The options with what the Platform says: its policy where none was given, its keys beside those given, its authority. Relative paths
/// are taken from `base`.
pub fn with_platform(options: &Options, platform: Option<&PlatformSpec>, base: &Path) -> Result<Options, ResolveError> {
    let mut options = options.clone();
    let Some(platform) = platform else { return Ok(options) };
    options.ca_pem.extend(platform.source.ca.clone());
    let Some(verify) = &platform.verify else { return Ok(options) };
    if options.verify.is_none() && !verify.policy.is_empty() {
        options.verify = Some(verify.policy.parse().map_err(|reason| refused("policy", reason))?);
    }
    for (index, key) in verify.keys.iter().enumerate() {
        add_key(&mut options, key, base).map_err(|reason| refused(&format!("keys[{index}]"), reason))?;
    }
    Ok(options)
}

/// `{signature, file}`, `{signature, value}` with PEM text, or `{signature, secretRef}`, whose text somebody with a cluster has read. A key
/// that was given directly wins.
fn add_key(options: &mut Options, key: &Value, base: &Path) -> Result<(), String> {
    let text = |field: &str| key.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let signature = text("signature").ok_or("`signature` is missing: the name of the signature that the key proves")?;
    if options.keys.contains_key(signature) || options.key_texts.contains_key(signature) {
        return Ok(());
    }
    match (text("file"), text("value"), key.get("secretRef")) {
        (Some(file), None, None) => {
            options.keys.insert(signature.to_owned(), base.join(file));
        }
        (None, Some(pem), None) => {
            options.key_texts.insert(signature.to_owned(), pem.to_owned());
        }
        (None, None, Some(_)) => return Err(format!("the key of {signature} is in a Secret, and no cluster was asked for it")),
        _ => return Err("one of `file`, `value` and `secretRef` says where the key is".to_owned()),
    }
    Ok(())
}

fn refused(field: &str, reason: String) -> ResolveError {
    ResolveError::Option { option: format!("Platform.spec.verify.{field}"), reason }
}

#[cfg(test)]
mod tests {
    use plinth_api::platform::VerifyPolicy;
    use serde_json::json;

    use super::*;
    use crate::options::Verify;

    fn platform(policy: &str, keys: &[Value]) -> PlatformSpec {
        let verify = Some(VerifyPolicy { policy: policy.into(), keys: keys.to_vec() });
        PlatformSpec { verify, ..PlatformSpec::default() }
    }

    #[test]
    fn flags_win_and_paths_are_beside_the_file() {
        let spec = platform("required", &[json!({"signature": "a", "file": "a.pub"}), json!({"signature": "b", "value": "PEM"})]);
        let merged = with_platform(&Options::default(), Some(&spec), Path::new("/x")).unwrap();
        assert_eq!(merged.verify, Some(Verify::Required));
        assert_eq!(merged.keys["a"], Path::new("/x/a.pub"));
        assert_eq!(merged.key_texts["b"], "PEM");
        let flags =
            Options { verify: Some(Verify::IfSigned), keys: [("a".to_owned(), "mine.pub".into())].into(), ..Options::default() };
        let merged = with_platform(&flags, Some(&spec), Path::new("/x")).unwrap();
        assert_eq!((merged.verify, merged.keys["a"].as_path()), (Some(Verify::IfSigned), Path::new("mine.pub")));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (policy, keys, expected) in [
            ("maybe", vec![], "spec.verify.policy"),
            ("", vec![json!({"file": "x"})], "keys[0]"),
            ("", vec![json!({"signature": "x"})], "`file`, `value` and `secretRef`"),
            ("", vec![json!({"signature": "x", "secretRef": {"name": "y"}})], "no cluster was asked"),
        ] {
            let error = with_platform(&Options::default(), Some(&platform(policy, &keys)), Path::new(".")).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
