//! Rust source as the text rules see it: the code of each line, without comments
//! and without what stands in string literals; and these literals.
//!
//! This is a scanner for rules of thumb, not a lexer: it knows line comments,
//! nested block comments, plain and raw strings, and character literals.

/// Lines of `text` with comments and the contents of literals blanked out.
pub fn code_lines(text: &str) -> Vec<String> {
    let scanner = Scanner::over(text);
    scanner.out.lines().map(str::to_owned).collect()
}

/// A string literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Line of its beginning, from 1.
    pub line: usize,
    /// The code before it, in its line.
    pub before: String,
    /// Its text. Where it is broken, the white space of the next line is in it.
    pub text: String,
}

/// The string literals of `text`, in order.
pub fn literals(text: &str) -> Vec<Literal> {
    Scanner::over(text).literals
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
    literals: Vec<Literal>,
}

impl<'a> Scanner<'a> {
    /// One that has been through all of `text`.
    fn over(text: &'a str) -> Self {
        let mut scanner = Scanner {
            rest: text,
            out: String::with_capacity(text.len()),
            literals: Vec::new(),
        };
        while scanner.step() {}
        scanner
    }

    /// Keeps the literal that begins here, `len` bytes long.
    fn keep(&mut self, len: usize) {
        let line = self.out.matches('\n').count() + 1;
        let before = self.out.rsplit('\n').next().unwrap_or_default();
        let before = before.trim().to_owned();
        let text = self.rest[..len].replace("\\\n", "\n");
        self.literals.push(Literal { line, before, text });
    }

    /// Takes one token; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment_len(self.rest));
        } else if let Some(len) = raw_string_len(self.rest).filter(|_| !self.inside_a_word()) {
            self.keep(len);
            self.blank(len);
        } else if first == '"' {
            let len = string_len(self.rest);
            self.keep(len);
            self.blank(len);
        } else if let Some(len) = character_len(self.rest) {
            self.blank(len);
        } else {
            self.out.push(first);
            self.rest = &self.rest[first.len_utf8()..];
        }
        true
    }

    fn inside_a_word(&self) -> bool {
        self.out
            .ends_with(|c: char| c.is_alphanumeric() || c == '_')
    }

    /// Drops `len` bytes of input, keeping its line ends.
    fn blank(&mut self, len: usize) {
        let (gone, rest) = self.rest.split_at(len);
        self.out.extend(gone.chars().filter(|&c| c == '\n'));
        self.out.push(' ');
        self.rest = rest;
    }
}

fn block_comment_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of `r"…"`, `br#"…"#` and the like, if one begins here.
fn raw_string_len(text: &str) -> Option<usize> {
    let after_b = text.strip_prefix('b').unwrap_or(text);
    let after_r = after_b.strip_prefix('r')?;
    let body = after_r.trim_start_matches('#');
    let hashes = after_r.len() - body.len();
    body.strip_prefix('"')?;
    let start = text.len() - body.len() + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(
        text[start..]
            .find(&end)
            .map_or(text.len(), |at| start + at + end.len()),
    )
}

/// Length of a character literal; `None` for a lifetime.
fn character_len(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    if let Some(escape) = body.strip_prefix('\\') {
        let skipped = escape.chars().next()?.len_utf8();
        return Some(2 + skipped + escape[skipped..].find('\'')? + 1);
    }
    let c = body.chars().next()?;
    body[c.len_utf8()..]
        .starts_with('\'')
        .then(|| 2 + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::code_lines;

    #[test]
    fn keeps_code_and_drops_comments_and_literals() {
        let lines = code_lines(
            "a // unsafe\n/* un\nsafe /* x */ */ b\nlet s = \"unsafe \\\" {\"; c\n\
             r#\"unsafe\n\"#; d\n'\"'; '\\''; '\\u{1f}'; e<'a>(x: &'a str)\n",
        );
        let joined = lines.join("|");
        assert!(
            !joined.contains("safe") && !joined.contains("1f"),
            "{joined}"
        );
        for word in ["a ", " b", "; c", "; d", "; e<'a>(x: &'a str)"] {
            assert!(joined.contains(word), "{word} is lost: {joined}");
        }
        assert_eq!(lines.len(), 7);
    }

    #[test]
    fn an_open_end_is_no_trouble() {
        for text in ["/* x", "\"x", "r##\"x\"#", "'", "'\\", "'\\u"] {
            code_lines(text);
        }
    }
}
