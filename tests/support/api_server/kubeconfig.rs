//! The identities that a test server knows, and kubeconfig files for them.

use std::{fmt::Write, net::SocketAddr, path::Path};

/// Somebody the server knows by token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// May do everything; plinth under test.
    Admin,
    /// May do everything; whoever plays the cluster's other programs, so that the audit log tells the two apart.
    Cluster,
    /// May do what every authenticated user may, until a test grants more by RBAC: user `limited`.
    Limited,
}

impl Identity {
    const ALL: [Self; 3] = [Self::Admin, Self::Cluster, Self::Limited];

    /// User name at the server, and context name in the kubeconfig.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Cluster => "cluster",
            Self::Limited => "limited",
        }
    }

    fn token(self) -> String {
        format!("{}-token", self.name())
    }
}

/// The server's token file.
pub(super) fn tokens() -> String {
    Identity::ALL.iter().fold(String::new(), |mut text, identity| {
        let group = if *identity == Identity::Limited { "" } else { ",\"system:masters\"" };
        let _ = writeln!(text, "{},{name},{name}{group}", identity.token(), name = identity.name());
        text
    })
}

/// A kubeconfig file with a context for every identity.
pub(super) fn render(current: Identity, address: SocketAddr, ca: &Path) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {}\nclusters:\n- name: test\n  cluster: {{server: \"https://{address}\", certificate-authority: \"{}\"}}\n",
        current.name(),
        ca.display(),
    );
    for (section, line) in [("users", "user: {token: TOKEN}"), ("contexts", "context: {cluster: test, user: NAME}")] {
        let _ = writeln!(text, "{section}:");
        for identity in Identity::ALL {
            let line = line.replace("TOKEN", &identity.token()).replace("NAME", identity.name());
            let _ = writeln!(text, "- name: {}\n  {line}", identity.name());
        }
    }
    text
}

/// A kubeconfig file for somebody with a token.
pub(super) fn of_token(name: &str, token: &str, address: SocketAddr, ca: &Path) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         clusters:\n- name: test\n  cluster: {{server: \"https://{address}\", certificate-authority: \"{}\"}}\n\
         users:\n- name: {name}\n  user: {{token: {token}}}\n\
         contexts:\n- name: {name}\n  context: {{cluster: test, user: {name}}}\n",
        ca.display(),
    )
}
