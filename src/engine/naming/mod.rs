//! Names that plinth derives: plurals, ApplySet ids, ControlPlane namespaces.
