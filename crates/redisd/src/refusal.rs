//! What a server's refusals mean, and the way out of each.

/// Beginnings of what servers answer, something that is in it as well, and what to do.
const WAYS_OUT: [(&str, &str, &str); 6] = [
    (
        "OOM",
        "",
        "give it more (--config maxmemory=…), set fewer --keys, or let it forget (--config maxmemory-policy=allkeys-lru)",
    ),
    ("MISCONF", "No space left", "its disk is full: a larger --size, fewer --keys, or another --on"),
    ("MISCONF", "", "it could not save; its folder's disk has the reason"),
    ("NOAUTH", "", "it wants a password: say which with --config requirepass=…"),
    ("WRONGPASS", "", "it has another password than --config requirepass=… says"),
    ("NOPERM", "", "its users may not do that: leave the ACL out of --config"),
];

/// What it said, with the way out where one is known.
pub fn with_way_out(said: &str) -> String {
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
    }
}
