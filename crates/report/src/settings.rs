//! What `apply` did or would do, for those who print it.

use change::lasting::Planned;

/// What is known at the end.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// What each file would say.
    pub planned: &'a Planned,
    /// Rules whose settings cannot be made, and why.
    pub refused: &'a [(String, String)],
    /// Under which name it can be reverted; none where nothing was written.
    pub id: Option<&'a str>,
}
