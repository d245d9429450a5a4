//! What a server's refusals mean, and the way out of each.

/// Beginnings of what servers answer, something that is in it as well, and what to do.
const WAYS_OUT: [(&str, &str, &str); 10] = [
    (
        "OOM",
        "",
        "give it more (--config maxmemory=…), set fewer --keys, or let it forget (--config maxmemory-policy=allkeys-lru)",
    ),
    ("MISCONF", "No space left", "its disk is full: a larger --size, fewer --keys, or another --on"),
    ("MISCONF", "", "it could not save; its folder's disk has the reason"),
    (
        "NOAUTH",
        "",
        "it wants a password: --config requirepass=… where tiermark starts it, redis://:PASSWORD@host where it runs already",
    ),
    ("WRONGPASS", "", "it has another password than --config requirepass=… or the URL says"),
    ("NOPERM", "", "its user may not do that: leave the ACL out of --config, or write a user in the URL who may"),
    ("CLUSTERDOWN", "", "a cluster is not loaded here: leave cluster-enabled out of --config"),
    ("MOVED", "", "a cluster is not loaded here: give the URL of a server by itself"),
    ("READONLY", "", "it is a replica: give the URL of the one that it follows"),
    ("ERR max number of clients", "", "fewer --connections, or a larger maxclients of that server"),
];

/// What it said, with the way out where one is known.
pub fn with_way_out(said: &str) -> String {
    // What a command that it does not know was asked with may be a value, which nobody can read.
    let said = said.split_once(", with args beginning with").map_or(said, |(said, _)| said);
    let known = WAYS_OUT.iter().find(|(begins, holds, _)| said.starts_with(begins) && said.contains(holds));
    known.map_or_else(|| said.to_owned(), |(.., way)| format!("{}; {way}", said.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_way_out() {
        let full = with_way_out("MISCONF Errors writing to the AOF file: No space left on device");
        assert!(full.ends_with("or another --on"), "{full}");
        assert!(
            with_way_out("OOM command not allowed when used memory > 'maxmemory'.")
                .contains("'maxmemory'; give it more")
        );
        assert_eq!(with_way_out("ERR unknown command"), "ERR unknown command");
        let unknown = with_way_out("ERR unknown command 'SET', with args beginning with: 'key' '\u{1}\u{2}'");
        assert_eq!(unknown, "ERR unknown command 'SET'");
    }
}
