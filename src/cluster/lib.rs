//! API servers: access, discovery, apply, watch.
