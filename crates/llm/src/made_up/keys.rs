//! Keys and texts in the bytes of a GGUF header. Which keys, and what they mean, is for others.

pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// The keys of a header, as GGUF writes them: name, number of the type, value.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) count: u64,
    pub(super) bytes: Vec<u8>,
}

impl Keys {
    pub(super) fn put(&mut self, name: &str, kind: u32, value: &[u8]) {
        self.count += 1;
        string(&mut self.bytes, name);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(value);
    }

    pub(super) fn number(&mut self, name: &str, value: u32) {
        self.put(name, 4, &value.to_le_bytes());
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        let mut bytes = Vec::new();
        string(&mut bytes, value);
        self.put(name, 8, &bytes);
    }

    pub(super) fn array(&mut self, name: &str, kind: u32, count: u32, each: impl Fn(&mut Vec<u8>, u32)) {
        self.put(name, 9, &kind.to_le_bytes());
        self.bytes.extend(u64::from(count).to_le_bytes());
        (0..count).for_each(|n| each(&mut self.bytes, n));
    }
}
