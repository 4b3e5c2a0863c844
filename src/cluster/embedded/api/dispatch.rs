//! The way of a request through the API: whose it is, where it goes, whether that is allowed, and who answers it.

use std::sync::Arc;

use http::Method;
use plinth_api::ClusterKey;

use super::{
    discovery,
    kinds::{self, Served},
    options,
    problem::Problem,
    rbac::{self, Acting, Attempt, User},
    route::{self, Route, Target},
    state::{Ask, Call, MAX_BODY, Reply, State},
};
use crate::embedded::{
    filter::{Reach, is_logical},
    seam::{Turn, Way},
};

/// What the mux of an API server says.
const NO_PAGE: &str = "404 page not found\n";

impl State {
    /// Answers a request.
    pub(crate) fn handle(&mut self, call: &Call) -> Reply {
        let reply = self.answer(call).unwrap_or_else(Reply::from);
        self.collect(call.now);
        reply
    }

    /// What a write meets that a fault says is in conflict.
    pub(crate) fn conflicting(&self, call: &Call) -> Reply {
        const WHY: &str = "the object has been modified; please apply your changes to the latest version and try again";
        let way = self.user(call).map_err(Reply::from).and_then(|user| self.way(call, &user));
        let to = match way.map(|way| route::parse(&way.path)) {
            Err(reply) => return reply,
            Ok(Route::Resource(to)) => to,
            Ok(_) => return Problem::conflict("", "", "", WHY).into(),
        };
        Problem::conflict(&to.group, &to.plural, &to.name.unwrap_or_default(), WHY).into()
    }

    fn answer(&mut self, call: &Call) -> Result<Reply, Problem> {
        if call.body.len() > MAX_BODY {
            return Err(Problem::too_large(MAX_BODY));
        }
        if let Some(acting) = call.acting.as_ref().filter(|acting| acting.name.is_empty()) {
            return Ok(Reply::Text(500, nobody(call, acting).into()));
        }
        let asking = self.user(call)?;
        let way = match self.way(call, &asking) {
            Ok(way) => way,
            Err(reply) => return Ok(reply),
        };
        let user = way.user.clone().unwrap_or(asking);
        let cluster = way.cluster();
        match route::parse(&way.path) {
            Route::Resource(target) => {
                self.is_there(&way, || Attempt::of(&target, verb(call, &target).unwrap_or("get")), &user)?;
                match self.served(&way, &target) {
                    Ok(served) => self.resource(&Ask { call, way: &way, cluster, served, target, user }),
                    Err(reply) => Ok(reply),
                }
            }
            route => {
                let path = || Attempt::path(call.method.as_str(), way.path.clone());
                self.is_there(&way, path, &user)?;
                if !rbac::allowed(&self.store, &cluster, &user, &path()) {
                    return Err(rbac::denied(&user, &path(), &way.reach));
                }
                let any_method = matches!(route, Route::Group(_) | Route::Health | Route::Unknown);
                if call.method != Method::GET && !any_method {
                    return Err(Problem::no_method());
                }
                if !call.acceptable && is_discovery(&route) {
                    return Err(Problem::not_acceptable());
                }
                Ok(self.about(&way, route))
            }
        }
    }

    fn user(&self, call: &Call) -> Result<User, Problem> {
        let user = match &call.token {
            None => call.user.clone(),
            Some(token) => self.tokens.get(token).cloned().ok_or_else(Problem::unauthorized)?,
        };
        let Some(acting) = &call.acting else { return Ok(user) };
        let cluster = Way::of(&call.path).map_or_else(|_| ClusterKey::host(), |way| way.cluster());
        rbac::acting(&self.store, &cluster, &user, acting)
    }

    /// The way of a request, or the answer that it has already.
    fn way(&self, call: &Call, user: &User) -> Result<Way, Reply> {
        match self.seam.as_ref().map_or(Turn::Pass, |seam| seam.turn(call, user, self)) {
            Turn::Pass => Way::of(&call.path).map_err(Reply::from),
            Turn::To(way) => Ok(*way),
            Turn::Answer(reply) => Err(reply),
        }
    }

    /// Nobody may do anything in a logical cluster that does not exist, as in kcp: not even learn that.
    fn is_there(&self, way: &Way, attempt: impl FnOnce() -> Attempt, user: &User) -> Result<(), Problem> {
        match &way.reach {
            Reach::One(cluster) if is_logical(cluster) && !self.clusters.contains(cluster) => {
                Err(rbac::denied(user, &attempt(), &way.reach))
            }
            _ => Ok(()),
        }
    }

    fn served(&self, way: &Way, target: &Target) -> Result<Arc<Served>, Reply> {
        let Target { group, version, plural, .. } = target;
        let (found, known) = match &way.kinds {
            Some(kinds) => (kinds.find(group, version, plural), kinds.served.iter().any(|kind| kind.group == *group)),
            None => match self.registry.find(&way.reach, group, version, plural) {
                // Kinds of CRDs are a server behind the server, which knows nothing of what is not there.
                None if way.reach == Reach::default() => (None, kinds::is_builtin(group)),
                None => (None, self.registry.has_group(&way.reach, group)),
                found => (found, true),
            },
        };
        found.ok_or_else(|| if known { Problem::no_resource().into() } else { Reply::Text(404, NO_PAGE.into()) })
    }

    fn about(&self, way: &Way, route: Route) -> Reply {
        let kinds = way.kinds.clone().unwrap_or_else(|| Arc::new(self.registry.all(&way.reach)));
        let served = &kinds.served;
        let found = match route {
            Route::Core => Some(discovery::core()),
            Route::Groups => Some(discovery::groups(served)),
            Route::Group(group) => discovery::group(served, &group),
            Route::Resources(group, version) => match discovery::resources(served, &group, &version) {
                None if kinds::is_builtin(&group) => return Problem::no_resource().into(),
                found => found,
            },
            Route::OpenApiIndex => Some(discovery::openapi_index(served, kinds.revision)),
            Route::OpenApi(group, version) => match discovery::builtin_openapi(served, &group, &version) {
                Some(text) => return Reply::Written(200, text),
                None => discovery::openapi(served, &group, &version),
            },
            Route::Version => Some(discovery::version()),
            Route::Health => return Reply::Text(200, "ok".into()),
            Route::Resource(_) | Route::Unknown => None,
        };
        found.map_or(Reply::Text(404, NO_PAGE.into()), |value| Reply::Json(200, value))
    }

    fn resource(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        if ask.target.namespace.is_some() && !ask.served.namespaced {
            return Err(Problem::no_resource());
        }
        let verb = verb(ask.call, &ask.target).ok_or_else(Problem::no_method)?;
        self.may(ask, verb)?;
        if ask.way.reach == Reach::Logical {
            across(&ask.target, verb)?;
        }
        if let Some(nothing) = nowhere(ask, verb) {
            return Ok(nothing);
        }
        if !ask.subresource_is_known() {
            return Err(Problem::no_resource());
        }
        if !ask.call.acceptable {
            return Err(Problem::not_acceptable());
        }
        options::check(ask.call, verb)?;
        match verb {
            _ if ask.target.subresource.as_deref() == Some("scale") => self.scale(ask, verb),
            "create" if ask.served.review => self.review(ask),
            "create" if ask.target.subresource.is_some() => self.token(ask),
            _ if ask.served.review => Err(Problem::no_method()),
            "create" => self.create(ask),
            "get" => self.get(ask),
            "list" => self.list(ask),
            "watch" => self.watch(ask),
            "update" => self.update(ask),
            "patch" => self.patch(ask),
            "delete" => self.delete(ask),
            _ => self.delete_all(ask),
        }
    }

    fn may(&self, ask: &Ask<'_>, verb: &str) -> Result<(), Problem> {
        let attempt = Attempt::of(&ask.target, verb);
        let allowed = rbac::allowed(&self.store, &ask.cluster, &ask.user, &attempt);
        if allowed { Ok(()) } else { Err(rbac::denied(&ask.user, &attempt, &ask.way.reach)) }
    }
}

/// The verb of a request, in the words of RBAC.
fn verb(call: &Call, target: &Target) -> Option<&'static str> {
    let named = target.name.is_some();
    if target.subresource.as_deref() == Some("token") {
        return (call.method == Method::POST).then_some("create");
    }
    Some(match (&call.method, named) {
        (&Method::GET, false) if call.query.is("watch") => "watch",
        (&Method::GET, false) => "list",
        (&Method::GET, true) => "get",
        (&Method::POST, false) => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) if target.subresource.is_none() => "delete",
        (&Method::DELETE, false) if !kinds::is_namespaces(&target.group, &target.plural) => "deletecollection",
        _ => return None,
    })
}

/// What is answered where nothing is: objects of namespaces are read together over all of them, and else in theirs; reviews have
/// no names.
fn nowhere(ask: &Ask<'_>, verb: &str) -> Option<Reply> {
    let is_named = ask.target.name.is_some();
    let is_over_all = ask.served.namespaced && ask.target.namespace.is_none() && !["list", "watch"].contains(&verb);
    match ask.served.builtin {
        false if is_over_all => Some(Reply::Text(404, NO_PAGE.into())),
        true if is_named && (is_over_all || ask.served.review) => Some(Problem::no_resource().into()),
        true if is_over_all && !ask.served.review => Some(Problem::no_method().into()),
        _ => None,
    }
}

fn is_discovery(route: &Route) -> bool {
    matches!(route, Route::Core | Route::Groups | Route::Group(_) | Route::Resources(..))
}

/// What is said to who asks in the name of groups and of nobody.
fn nobody(call: &Call, acting: &Acting) -> String {
    let groups: Vec<String> = acting.groups.iter().map(|group| format!("{{Group  {group}    }}")).collect();
    let groups = groups.join(" ");
    format!("Internal Server Error: {:?}: requested [{groups}] without impersonating a user\n", call.path)
}

/// Over all logical clusters there are lists and watches, of everything in each.
fn across(target: &Target, verb: &str) -> Result<(), Problem> {
    if !["list", "watch"].contains(&verb) {
        return Err(Problem::no_resource_across());
    }
    match &target.namespace {
        Some(namespace) => Err(Problem::one_namespace_across(namespace)),
        None => Ok(()),
    }
}
