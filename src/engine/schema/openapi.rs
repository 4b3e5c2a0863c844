//! An API server's OpenAPI v3 document, and what kinds it describes.

use serde_json::Value;
use thiserror::Error;

use super::KindInfo;

/// Why an OpenAPI document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenApiError {
    /// A part is not what OpenAPI v3 says.
    #[error("reading {what} of an OpenAPI document: {message}")]
    Malformed {
        /// The part.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// The document is larger than we read.
    #[error("an OpenAPI document has more than {limit} {what}")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

/// All kinds that the document (one group and version, `/openapi/v3/apis/GROUP/VERSION`) describes and serves.
pub fn kinds(_document: &Value) -> Result<Vec<KindInfo>, OpenApiError> {
    Ok(Vec::new())
}
