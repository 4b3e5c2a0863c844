//! Release channels: everything of OCM that a consumer needs.
