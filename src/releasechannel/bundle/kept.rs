//! Which platforms of images a bundle carries.

use serde_json::Value;

/// Platforms, such as `linux/amd64` or `linux/arm64/v8`; all where none is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(Vec<Platform>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

impl Kept {
    /// Reads `OS/ARCHITECTURE[/VARIANT]` texts; the error says which is none.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        texts.iter().map(|text| platform(text)).collect::<Result<_, _>>().map(Self)
    }

    /// The texts again, joined by commas; empty where all are kept.
    pub(crate) fn text(&self) -> String {
        let text = |platform: &Platform| {
            let variant = platform.variant.as_ref().map(|variant| format!("/{variant}")).unwrap_or_default();
            format!("{}/{}{variant}", platform.os, platform.architecture)
        };
        self.0.iter().map(text).collect::<Vec<_>>().join(",")
    }

    /// Those that no member of an index is for.
    pub(crate) fn without(&self, members: &[&Value]) -> Vec<String> {
        let alone = self.0.iter().map(|platform| Self(vec![platform.clone()]));
        let is_for = |one: &Self| members.iter().any(|member| platform_of(member).is_some() && one.keeps(member));
        alone.filter(|one| !is_for(one)).map(|one| one.text()).collect()
    }

    /// Whether this member of an index is carried. What is for no platform, such as an attestation, always is.
    pub(crate) fn keeps(&self, member: &Value) -> bool {
        let of = |key: &str| member.get("platform").and_then(|platform| platform.get(key)).and_then(Value::as_str);
        let (Some(os), Some(architecture)) = (of("os"), of("architecture")) else { return true };
        let is_it = |platform: &Platform| {
            platform.os == os
                && platform.architecture == architecture
                && platform.variant.as_deref().is_none_or(|variant| of("variant") == Some(variant))
        };
        self.0.is_empty() || os == "unknown" || self.0.iter().any(is_it)
    }
}

/// The platform of a member of an index, where it is for one.
pub(crate) fn platform_of(member: &Value) -> Option<String> {
    let of = |key: &str| member.get("platform")?.get(key)?.as_str();
    let (os, architecture) = (of("os").filter(|os| *os != "unknown")?, of("architecture")?);
    let variant = of("variant").map(|variant| format!("/{variant}")).unwrap_or_default();
    Some(format!("{os}/{architecture}{variant}"))
}

fn platform(text: &str) -> Result<Platform, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let is_word =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match parts.as_slice() {
        [os, architecture, variant @ ..] if variant.len() < 2 && parts.iter().all(is_word) => Ok(Platform {
            os: (*os).to_owned(),
            architecture: (*architecture).to_owned(),
            variant: variant.first().map(|variant| (*variant).to_owned()),
        }),
        _ => Err(format!("{text}: write OS/ARCHITECTURE, such as linux/amd64")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_what_was_named_and_what_has_no_platform() {
        let member = |os: &str, architecture: &str, variant: Option<&str>| {
            let variant = variant.map(Value::from).unwrap_or_default();
            json!({"platform": {"os": os, "architecture": architecture, "variant": variant}})
        };
        let kept = |texts: &[&str]| Kept::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap();
        let one = kept(&["linux/arm64", "linux/arm/v7"]);
        assert!(one.keeps(&member("linux", "arm64", Some("v8"))) && one.keeps(&member("linux", "arm", Some("v7"))));
        assert!(!one.keeps(&member("linux", "arm", Some("v6"))) && !one.keeps(&member("linux", "amd64", None)));
        assert!(one.keeps(&json!({})) && one.keeps(&member("unknown", "unknown", None)));
        assert!(kept(&[]).keeps(&member("plan9", "mips", None)));
        assert_eq!(one.text(), "linux/arm64,linux/arm/v7");
        for text in ["linux", "linux/", "a/b/c/d", "linux/amd 64"] {
            assert!(Kept::parse(&[text.to_owned()]).is_err(), "{text}");
        }
    }
}
