//! Waiting for a host that is busy or broken: how often, how long, and said.

use std::time::{Duration, Instant};

use reqwest::Response;

use crate::error::RepositoryError;
use crate::options::Limits;

/// The longest pause between two attempts. Who asks for more is not waited for.
const LONGEST: Duration = Duration::from_mins(1);
/// A pause that a person would wonder at.
const NOTABLE: Duration = Duration::from_secs(1);
/// Where pauses are said, for those who listen.
const WAITING: &str = "plinth::waiting";

/// The attempts for one request.
pub(super) struct Patience<'a> {
    limits: &'a Limits,
    place: &'a str,
    what: &'a str,
    /// The one that is being made.
    attempt: u32,
    begun: Instant,
}

impl<'a> Patience<'a> {
    pub(super) fn new(limits: &'a Limits, place: &'a str, what: &'a str) -> Self {
        Self { limits, place, what, attempt: 1, begun: Instant::now() }
    }

    /// Waits for the next attempt; an error where there is none left, or where the host asks for more time than anybody waits. `asked` is
    /// what it asks for.
    pub(super) async fn again(&mut self, cause: String, asked: Option<Duration>) -> Result<(), RepositoryError> {
        if let Some(asked) = asked.filter(|asked| *asked > LONGEST) {
            let (asked, most) = (asked.as_secs(), LONGEST.as_secs());
            return Err(self.over(format!(
                "{cause} and asks for a pause of {asked} s, longer than the {most} s that are waited: run the same command again then"
            )));
        }
        if self.attempt >= self.limits.attempts {
            return Err(self.over(cause));
        }
        let pause = asked.unwrap_or(self.limits.backoff * 2_u32.saturating_pow(self.attempt - 1)).min(LONGEST);
        self.say(pause, &cause);
        tokio::time::sleep(pause).await;
        self.attempt += 1;
        Ok(())
    }

    fn say(&self, pause: Duration, cause: &str) {
        let Self { limits: Limits { attempts, .. }, place, what, attempt, .. } = self;
        tracing::warn!(registry = %place, %what, attempt, of = attempts, %cause, "trying again");
        if pause >= NOTABLE {
            let (pause, so_far) = (pause.as_secs_f64(), self.begun.elapsed().as_secs());
            tracing::warn!(target: WAITING, "waiting {pause} s for {place}: {cause} when asked for {what} (attempt {attempt} of {attempts}, {so_far} s so far)");
        }
    }

    fn over(&self, cause: String) -> RepositoryError {
        let (what, place) = (self.what.to_owned(), self.place.to_owned());
        RepositoryError::Unavailable { what, place, attempts: self.attempt, cause }
    }
}

/// Whether an answer is for good.
pub(super) enum Later {
    No,
    /// Try again, after this long where the registry says so.
    Yes(Option<Duration>),
}

/// Reads status and `Retry-After`.
pub(super) fn retry_after(response: &Response) -> Later {
    if !matches!(response.status().as_u16(), 408 | 429 | 500 | 502 | 503 | 504) {
        return Later::No;
    }
    let text = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    Later::Yes(text.and_then(|text| pause(text.trim(), jiff::Timestamp::now())))
}

/// Seconds, or a date (RFC 9110).
fn pause(text: &str, now: jiff::Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_number_or_a_date() {
        let now: jiff::Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("7", Some(7)),
            ("Mon, 30 Nov 2026 10:00:20 GMT", Some(20)),
            ("Mon, 30 Nov 2026 09:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(pause(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
