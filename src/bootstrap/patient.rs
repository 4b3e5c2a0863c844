//! Questions that are asked again: a cluster that goes away and comes back costs a run time and nothing else.

use std::sync::Arc;

use plinth_api::{GroupVersionKind, Object, ObjectKey, Permission};
use plinth_engine::{
    ports::{Answer, Query, ReadError, Reader},
    schema::SchemaSource,
};
use plinth_run::ClusterIdentity;

use crate::{
    ports::{Access, Listable, Ports, Schemas},
    preflight::Deadline,
    write::Retry,
};

/// The same ports, whose questions wait for an answer until the deadline; each attempt that failed is shown.
pub(crate) fn patient(ports: &Ports, deadline: Deadline) -> Ports {
    let patient = Arc::new(Patient { ports: ports.clone(), deadline });
    let (reader, access, schemas) = (Arc::clone(&patient) as _, Arc::clone(&patient) as _, patient as _);
    Ports { reader, access, schemas, ..ports.clone() }
}

struct Patient {
    ports: Ports,
    deadline: Deadline,
}

impl Patient {
    async fn ask<'a, T>(&'a self, what: String, ask: impl Fn() -> Answer<'a, Result<T, ReadError>>) -> Result<T, ReadError> {
        let mut retry = Retry::new(&self.ports, self.deadline, what);
        loop {
            match ask().await {
                Err(ReadError::Unavailable(message)) => {
                    // The last words of the server say more than that the time is over.
                    let last = ReadError::Unavailable(message.clone());
                    retry.wait(message).await.map_err(|_| last)?;
                }
                answer => return answer,
            }
        }
    }
}

impl Reader for Patient {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Box::pin(self.ask(format!("read {key}"), || self.ports.reader.get(key)))
    }

    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        Box::pin(self.ask(format!("list {}", query.gvk), || self.ports.reader.list(query)))
    }
}

impl Access for Patient {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        Box::pin(self.ask("identify the cluster".into(), || self.ports.access.identity()))
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(self.ask(format!("ask for permission to {permission}"), || self.ports.access.can_i(permission)))
    }
}

impl Schemas for Patient {
    fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(self.ask("read the schemas of the kinds".into(), || self.ports.schemas.ensure(kinds)))
    }

    fn listable(&self) -> Answer<'_, Result<Vec<Listable>, ReadError>> {
        Box::pin(self.ask("read what is served".into(), || self.ports.schemas.listable()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use plinth_run::{EventKind, Outcome};

    use super::*;
    use crate::{ports::Always, removal, runner, testing::Bench};

    /// Answers every second question only.
    struct Flaky(Ports, AtomicUsize);

    impl Flaky {
        fn over(ports: &Ports) -> Ports {
            let flaky = Arc::new(Self(ports.clone(), AtomicUsize::new(0)));
            let (reader, access, schemas) = (Arc::clone(&flaky) as _, Arc::clone(&flaky) as _, flaky as _);
            Ports { reader, access, schemas, ..ports.clone() }
        }

        fn is_away(&self) -> Result<(), ReadError> {
            match self.1.fetch_add(1, Ordering::Relaxed) % 2 {
                0 => Err(ReadError::Unavailable("connection refused".into())),
                _ => Ok(()),
            }
        }
    }

    impl Reader for Flaky {
        fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
            Box::pin(async {
                self.is_away()?;
                self.0.reader.get(key).await
            })
        }

        fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
            Box::pin(async {
                self.is_away()?;
                self.0.reader.list(query).await
            })
        }
    }

    impl Access for Flaky {
        fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
            Box::pin(async {
                self.is_away()?;
                self.0.access.identity().await
            })
        }

        fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
            Box::pin(async {
                self.is_away()?;
                self.0.access.can_i(permission).await
            })
        }
    }

    impl Schemas for Flaky {
        fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
            Box::pin(async {
                self.is_away()?;
                self.0.schemas.ensure(kinds).await
            })
        }

        fn listable(&self) -> Answer<'_, Result<Vec<Listable>, ReadError>> {
            Box::pin(async {
                self.is_away()?;
                self.0.schemas.listable().await
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_every_second_question_costs_time_alone() {
        let bench = Bench::new();
        let distribution = bench.distribution();
        let request = runner::Request {
            content: &bench.content,
            distribution: &distribution,
            settings: &bench.settings,
            saved: None,
            resumed: None,
        };
        let always = Always("--apply".into());
        assert_eq!(runner::up(&request, &Flaky::over(&bench.ports()), &always).await, Outcome::Done, "{}", bench.message());
        assert!(bench.count(|kind| matches!(kind, EventKind::Retry { .. })) > 10);
        let down = removal::down(&bench.settings, None, &Flaky::over(&bench.ports()), &always).await;
        assert_eq!(down, Outcome::Done, "{}", bench.message());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_deadline_and_the_servers_last_words() {
        let bench = Bench::new();
        let ports = bench.ports();
        bench.cluster.fault(Some(crate::memory::Fault::Down(usize::MAX)));
        let deadline = Deadline::after(ports.log.clock().as_ref(), std::time::Duration::from_secs(30));
        let asked = patient(&ports, deadline).access.identity().await;
        assert_eq!(asked, Err(ReadError::Unavailable("connection refused".into())));
    }
}
