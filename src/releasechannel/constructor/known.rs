//! The fields that OCM's component constructors have. Any other one is a slip of the pen: read past, it would go without effect.

use serde::{Deserialize, de::IgnoredAny};

use crate::text::{self, TextError};

/// The first field of a constructor that nobody knows, with its place. What is wrong otherwise is said where it is read.
pub(super) fn first_unknown(bytes: &[u8], is_list: bool) -> Option<TextError> {
    let read =
        if is_list { text::document::<Constructor>(bytes).map(drop) } else { text::document::<Described>(bytes).map(drop) };
    let error = read.err()?;
    let (field, known) = error.message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let known = known.trim_start_matches("one of ").replace('`', "");
    let message = format!("unknown field `{field}` (fields here are {known})");
    Some(TextError { message, ..error })
}

type Any = Option<IgnoredAny>;

macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        struct $name { $($field: $type),* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: Default::default()),* }
            }
        }
    };
}

fields!(
    /// A file with several components.
    Constructor { meta: Any, components: Option<Vec<Described>> }
);
fields!(Described {
    meta: Any,
    name: Any,
    version: Any,
    labels: Option<Vec<Label>>,
    provider: Any,
    creation_time: Any,
    repository_contexts: Any,
    resources: Option<Vec<Element>>,
    sources: Option<Vec<Element>>,
    component_references: Option<Vec<Reference>>,
    references: Option<Vec<Reference>>,
});
fields!(
    /// A resource or a source.
    Element {
        name: Any,
        version: Any,
        extra_identity: Any,
        labels: Option<Vec<Label>>,
        r#type: Any,
        relation: Any,
        src_refs: Any,
        source_refs: Any,
        digest: Any,
        options: Any,
        copy_policy: Any,
        creation_time: Any,
        input: Option<Input>,
        access: Any,
    }
);
fields!(Reference { name: Any, version: Any, component_name: Any, extra_identity: Any, labels: Option<Vec<Label>>, digest: Any });
fields!(Label { name: Any, value: Any, version: Any, signing: Any, merge: Any });
fields!(
    /// Of all types of inputs together; the type decides which of them mean something.
    Input {
        r#type: Any,
        name: Any,
        path: Any,
        text: Any,
        json: Any,
        formatted_json: Any,
        yaml: Any,
        formatted_yaml: Any,
        data: Any,
        media_type: Any,
        compress: Any,
        preserve_dir: Any,
        follow_symlinks: Any,
        include_files: Any,
        exclude_files: Any,
        version: Any,
        repository: Any,
        helm_repository: Any,
        ca_cert: Any,
        ca_cert_file: Any,
        platforms: Any,
        variants: Any,
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(u64, u64, String)> {
        let error = first_unknown(text.as_bytes(), text.contains("components:"))?;
        Some((error.line, error.column, error.message))
    }

    #[test]
    fn a_slip_of_the_pen_is_named_with_its_place() {
        let (line, column, message) = of("components:\n- name: a.b/c\n  version: 1.0.0\n  providerr: x\n").unwrap();
        assert_eq!((line, column), (4, 3), "{message}");
        assert!(message.starts_with("unknown field `providerr` (fields here are meta, name, version, "), "{message}");
        for text in [
            "component: []\ncomponents: []\n",
            "name: a\nresource: []\n",
            "name: a\nresources:\n- {name: r, typ: x}\n",
            "name: a\nresources:\n- {name: r, input: {type: file, pth: x}}\n",
            "name: a\ncomponentReferences:\n- {name: r, component: x}\n",
            "name: a\nlabels:\n- {name: r, valu: x}\n",
        ] {
            let found = of(text).unwrap_or_else(|| panic!("accepted: {text}"));
            assert!(found.0 > 0 && found.1 > 0 && found.2.starts_with("unknown field"), "{found:?}");
        }
        assert_eq!(of("name: a\nresources: {a: 1}\n"), None, "whoever reads it says what is wrong");
        assert_eq!(of("components:\n- {name: a, provider: {name: x, any: 1}, labels: null}\n"), None);
    }
}
