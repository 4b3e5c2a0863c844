//! From a resource's bytes to objects to apply. Pure, bounded.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use plinth_api::Object;
use plinth_engine::yaml;
use serde_json::Value;

use super::report::{Failed, Reason};

/// Most bytes of manifests after decompression.
pub const LONGEST: u64 = 32 << 20;
/// Most objects of one resource.
pub const MOST_OBJECTS: usize = 10_000;

/// Reads YAML or JSON documents, compressed or not (by the bytes, never by a media type: ocm.md section 5).
///
/// `what` names the resource in errors. Lists are taken apart, empty documents left out; a resource without objects is wrong.
pub fn objects(what: &str, bytes: &[u8]) -> Result<Vec<Object>, Failed> {
    let wrong = |message: String| Failed::wrong(Reason::MarshalFailed, format!("{what}: {message}"));
    let text = String::from_utf8(plain(bytes, LONGEST).map_err(wrong)?).map_err(|_| wrong("is not UTF-8 text".into()))?;
    let documents = yaml::documents(&text).map_err(|diagnostic| wrong(diagnostic.to_string()))?;
    let mut objects = Vec::new();
    for document in documents {
        take_apart(document.value, &mut objects).map_err(wrong)?;
    }
    match objects.len() {
        0 => Err(wrong("has no objects".into())),
        1..=MOST_OBJECTS => Ok(objects),
        count => Err(wrong(format!("has {count} objects, more than {MOST_OBJECTS}"))),
    }
}

fn plain(bytes: &[u8], longest: u64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let read = match bytes {
        [0x1f, 0x8b, ..] => MultiGzDecoder::new(bytes).take(longest + 1).read_to_end(&mut out),
        _ => bytes.take(longest + 1).read_to_end(&mut out),
    };
    read.map_err(|error| format!("cannot be decompressed: {error}"))?;
    if out.len() as u64 > longest {
        return Err(format!("is longer than {longest} bytes"));
    }
    Ok(out)
}

/// A `List` of any kind holds objects; nobody nests lists.
fn take_apart(value: Value, into: &mut Vec<Object>) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && value["items"].is_array();
    if let (true, Some(items)) = (is_list, value["items"].as_array()) {
        return items.iter().try_for_each(|item| complete(item.clone()).map(|object| into.push(object)));
    }
    into.push(complete(value)?);
    Ok(())
}

fn complete(value: Value) -> Result<Object, String> {
    let object = Object::from_value(value).ok_or("a document is not a mapping")?;
    if object.gvk().is_none() {
        return Err("a document has no apiVersion or kind".into());
    }
    if object.name().is_empty() {
        return Err("a document has no metadata.name".into());
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const TWO: &str = "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\n\
        apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n";

    fn names(bytes: &[u8]) -> Vec<String> {
        objects("r", bytes).unwrap().iter().map(|object| object.name().to_owned()).collect()
    }

    #[test]
    fn documents_are_read_in_every_dress() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(TWO.as_bytes()).unwrap();
        assert_eq!(names(TWO.as_bytes()), ["a", "b"]);
        assert_eq!(names(&gzip.finish().unwrap()), ["a", "b"]);
        assert_eq!(names(br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"j"}}"#), ["j"]);
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l}}\n";
        assert_eq!(names(list.as_bytes()), ["l"]);
    }

    #[test]
    fn what_cannot_be_applied_is_refused_by_name() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "has no objects"),
            (b"\x1f\x8brubbish", "decompressed"),
            (b"\xff\xfe", "UTF-8"),
            (b"just text", "not a mapping"),
            (b"kind: ConfigMap\nmetadata: {name: a}\n", "apiVersion"),
            (b"apiVersion: v1\nkind: ConfigMap\n", "metadata.name"),
        ];
        for (bytes, words) in cases {
            let failed = objects("resource rgd", bytes).unwrap_err();
            assert!(failed.message.contains(words) && failed.message.starts_with("resource rgd: "), "{}", failed.message);
        }
    }

    #[test]
    fn a_small_archive_of_much_text_is_bounded() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all("#".repeat(1 << 16).as_bytes()).unwrap();
        let small = gzip.finish().unwrap();
        assert!(small.len() < 1 << 10);
        assert_eq!(plain(&small, 1 << 16).map(|text| text.len()), Ok(1 << 16));
        assert_eq!(plain(&small, (1 << 16) - 1), Err("is longer than 65535 bytes".to_owned()));
    }
}
