//! What each check means and what to do where it fails: one row a check. The pages in `docs/why` are made from this table.

use super::{IDENTITY, IMAGES, NOTHING_LEFT, PERMISSIONS, PLAN, REACHABLE};

/// A check's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The check's id, which is the page's name.
    pub id: &'static str,
    /// What is asked, in a few words.
    pub asks: &'static str,
    /// When it fails.
    pub fails: &'static str,
    /// What to do then.
    pub next: &'static str,
}

/// Every check there is.
pub const PAGES: [Page; 6] = [
    Page {
        id: REACHABLE,
        asks: "does the cluster answer, and who is it",
        fails: "The API server of the context could not be reached until the deadline, or refuses who we are. It is asked again with \
                growing pauses, each of which is told. It is known by the UID of its namespace kube-system.",
        next: "See which server and user `kubectl --context NAME get ns kube-system` reaches; --kubeconfig and --context choose \
               another, --timeout waits longer.",
    },
    Page {
        id: IDENTITY,
        asks: "is it the cluster that the journal, or the saved plan, was made for",
        fails: "The journal proves what was applied to one cluster, and a plan compares with one cluster. Behind the same address \
                there is another one now: a kind cluster that was made anew, or a kubeconfig that was changed.",
        next: "Choose the context that was meant. On a cluster that was made anew, begin with --journal FILE, and make the plan again.",
    },
    Page {
        id: IMAGES,
        asks: "does the mirror have every image of the distribution, by digest",
        fails: "With --mirror no other host is asked, so that an image that is not there could be pulled from nowhere. Each one that \
                lacks is named. Nothing was written.\n\nAn image that is in the mirror beside its component alone is a warning: pods of the \
                platform are given that place, by digest, but a node that\npulls by the image's ordinary name gets nothing, or what \
                somebody else has put there.",
        next: "Complete the mirror with `plinth bundle create` and `plinth bundle push`; `plinth bundle verify` lists what lacks.",
    },
    Page {
        id: PLAN,
        asks: "has the release lock all that the graphs ask for, and does every definition compile",
        fails: "A definition is wrong, asks for a component or an image that the channel does not hold, or for a kind that nobody \
                brings. Each finding names its place. Nothing was written.",
        next: "`plinth rgd check FILE` finds all mistakes of a definition at once; `plinth channel show SOURCE` lists what the \
               channel holds; `plinth rehearse SOURCE` tries a repaired one without a cluster.",
    },
    Page {
        id: PERMISSIONS,
        asks: "may our identity do everything that the plan needs",
        fails: "A SelfSubjectAccessReview for each verb and kind of the plan was answered, and some with no. The end of the run names \
                all of them, a line each. Nothing was written.",
        next: "Have the named rights granted by a ClusterRole, or choose a context with more rights.",
    },
    Page {
        id: NOTHING_LEFT,
        asks: "is everything that carries the platform's label gone after a removal",
        fails: "Something with the platform's label is still there: a finalizer of another controller holds it, or it was made \
                again meanwhile. Each object is named.",
        next: "Ask what holds an object with `plinth why KIND/NAME`, let its own controller let go of it, and run `plinth down` again.",
    },
];

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// `UPDATE_DOCS=1` writes the pages.
    fn held(name: &str, made: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/why").join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, made).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == made, "docs/why/{name} is stale; UPDATE_DOCS=1 cargo test -p plinth-bootstrap pages writes it");
    }

    #[test]
    fn every_check_has_its_page() {
        let mut index = "# Checks before the first write\n\nMade from the table in `src/bootstrap/preflight`; a test holds every \
                         page. All checks run, and one that fails names all that it found.\n\n| check | what is asked |\n| --- | --- |\n"
            .to_owned();
        for Page { id, asks, fails, next } in PAGES {
            index += &format!("| [{id}]({id}.md) | {asks} |\n");
            held(&format!("{id}.md"), &format!("# {id}: {asks}?\n\n{fails}\n\n## Next\n\n{next}\n"));
        }
        held("checks.md", &index);
        println!("SHOW 06 checks {} pages", PAGES.len());
    }
}
