//! YAML as Kubernetes reads it, with the place of every value.
