//! In whose name children are written (docs/decisions/0018-service-accounts.md).

use plinth_api::{Object, rgd::Scope};

use super::{compiled::Options, definition::Definition, findings::Findings};
use crate::{
    naming::{is_label, is_subdomain},
    ports::ServiceAccount,
};

/// Where a definition names the account.
const PATH: &str = "metadata.annotations[\"plinth.dev/service-account\"]";
/// Longest name of an object.
const LONGEST: usize = 253;

/// The service account that each instance's children are written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace; `None` for that of the instance.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Account {
    /// The account of one instance.
    pub fn of(&self, instance: &Object) -> ServiceAccount {
        let namespace = self.namespace.as_deref().or_else(|| instance.namespace()).unwrap_or_default();
        ServiceAccount { namespace: namespace.to_owned(), name: self.name.clone() }
    }

    /// `NAME` for instances in namespaces, `NAMESPACE/NAME` for those of the cluster.
    fn parse(text: &str, scope: Scope) -> Option<Self> {
        let (namespace, name) = text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name));
        let is_named = name.len() <= LONGEST && is_subdomain(name) && namespace.is_none_or(is_label);
        let fits = namespace.is_some() == (scope == Scope::Cluster);
        (is_named && fits).then(|| Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

/// The account of a definition: its own, else the one that all definitions have. What cannot be read is an error, so that nothing is
/// ever written by the controller's rights where an account was meant.
pub(super) fn read(definition: &Definition, options: &Options, findings: &mut Findings<'_>) -> Option<Account> {
    let text = definition.account.as_ref().or(options.account.as_ref())?;
    let scope = definition.spec.schema.scope;
    let account = Account::parse(text, scope);
    if account.is_none() {
        let form = match scope {
            Scope::Namespaced => "the name of a service account in the namespace of each instance",
            Scope::Cluster => "NAMESPACE/NAME of a service account, because instances of the cluster have no namespace",
        };
        findings.hinted(PATH, format!("{text:?} names no service account"), Some(format!("give {form}")));
    }
    account
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_the_namespace_of_its_instance_or_its_own() {
        let instance = Object::from_value(serde_json::json!({"metadata": {"name": "i", "namespace": "team"}})).unwrap();
        let of = |text: &str, scope| Account::parse(text, scope).map(|account| account.of(&instance).to_string());
        assert_eq!(of("app", Scope::Namespaced).as_deref(), Some("system:serviceaccount:team:app"));
        assert_eq!(of("infra/app", Scope::Cluster).as_deref(), Some("system:serviceaccount:infra:app"));
        for (text, scope) in [
            ("infra/app", Scope::Namespaced),
            ("app", Scope::Cluster),
            ("", Scope::Namespaced),
            ("/app", Scope::Cluster),
            ("infra/", Scope::Cluster),
            ("a/b/c", Scope::Cluster),
            ("A:b", Scope::Namespaced),
        ] {
            assert_eq!(of(text, scope), None, "{text:?}");
        }
    }
}
