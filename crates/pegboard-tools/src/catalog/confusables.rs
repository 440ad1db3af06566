//! Folds characters that look like Latin letters or digits into them. Two names that fold into the same text look alike.

/// The ASCII character that `c` looks like, or `c` itself.
pub(crate) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let code = u32::from(c);
    let letter = |base: char, offset: u32| char::from_u32(u32::from(base) + offset).unwrap_or(c);
    match c {
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => letter('!', code - 0xff01),
        // Circled letters.
        '\u{24b6}'..='\u{24cf}' => letter('A', code - 0x24b6),
        '\u{24d0}'..='\u{24e9}' => letter('a', code - 0x24d0),
        // Mathematical letters: 26 capitals and 26 small letters in each of 13 styles; then digits.
        '\u{1d400}'..='\u{1d6a3}' => match (code - 0x1d400) % 52 {
            offset @ 0..=25 => letter('A', offset),
            offset => letter('a', offset - 26),
        },
        '\u{1d7ce}'..='\u{1d7ff}' => letter('0', (code - 0x1d7ce) % 10),
        // Spaces of other widths.
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        // Hyphens, dashes and quotes.
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        _ => SIMILAR
            .iter()
            .find(|(_, similar)| similar.contains(c))
            .map_or(c, |(letter, _)| *letter),
    }
}

/// Letters of other scripts and accented letters, by the letter they look like.
const SIMILAR: &[(char, &str)] = &[
    ('a', "аαɑàáâãäåāă"),
    ('b', "Ьƅ"),
    ('c', "сϲçćčⅽ"),
    ('d', "ԁⅾďđ"),
    ('e', "еєεèéêëēėęě℮"),
    ('f', "ƒ"),
    ('g', "ɡğģ"),
    ('h', "һհ"),
    ('i', "іıιìíîïīįⅰ"),
    ('j', "јϳ"),
    ('k', "кκ"),
    ('l', "ӏℓłⅼ"),
    ('m', "мⅿ"),
    ('n', "ոпñńňη"),
    ('o', "оοօσòóôõöøōº"),
    ('p', "рρ"),
    ('q', "ԛ"),
    ('r', "гř"),
    ('s', "ѕśşšſ"),
    ('t', "тτţť"),
    ('u', "սυùúûüūůų"),
    ('v', "νѵⅴ"),
    ('w', "ԝωѡ"),
    ('x', "хχⅹ"),
    ('y', "уγýÿ"),
    ('z', "źżž"),
    ('A', "АΑÀÁÂÃÄÅ"),
    ('B', "ВΒ"),
    ('C', "СϹÇⅭ"),
    ('D', "Ⅾ"),
    ('E', "ЕΕÈÉÊË"),
    ('H', "НΗ"),
    ('I', "ІΙӀÌÍÎÏⅠ"),
    ('J', "Ј"),
    ('K', "КΚK"),
    ('M', "МΜⅯ"),
    ('N', "ΝÑ"),
    ('O', "ОΟՕÒÓÔÕÖØ"),
    ('P', "РΡ"),
    ('S', "Ѕ"),
    ('T', "ТΤ"),
    ('U', "ՍÙÚÛÜ"),
    ('V', "Ѵ"),
    ('X', "ХΧ"),
    ('Y', "УΥÝ"),
    ('Z', "Ζ"),
];

/// The form of a name in which look-alikes are equal: without case and separators, and with one form for `0` and `O`, for `1`, `l` and `I`,
/// and for `rn` and `m`.
pub(crate) fn skeleton(name: &str) -> String {
    let mut skeleton = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !super::sanitize::is_invisible(*c)) {
        match fold(c).to_ascii_lowercase() {
            '_' | '-' | '.' | '/' | ' ' | ':' => {}
            '0' => skeleton.push('o'),
            '1' | 'i' | '|' => skeleton.push('l'),
            'n' if skeleton.ends_with('r') => {
                skeleton.pop();
                skeleton.push('m');
            }
            'v' if skeleton.ends_with('v') => {
                skeleton.pop();
                skeleton.push('w');
            }
            c => skeleton.extend(c.to_lowercase()),
        }
    }
    skeleton
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_have_the_same_skeleton() {
        for (name, other) in [
            ("read_file", "reаd_file"),
            ("read_file", "Read-File"),
            ("read_file", "readFile"),
            ("send_email", "send_emai1"),
            ("send_email", "send_emaiI"),
            ("lookup", "l00kup"),
            ("confirm", "confirrn"),
            ("write", "vvrite"),
            ("search", "ｓｅａｒｃｈ"),
            ("search", "𝐬𝐞𝐚𝐫𝐜𝐡"),
            ("search", "sea\u{200b}rch"),
            ("scope", "ѕсоре"),
            ("ACE", "АСЕ"),
        ] {
            assert_eq!(skeleton(name), skeleton(other), "{other}");
        }
        for (name, other) in [
            ("read_file", "read_files"),
            ("get", "set"),
            ("a1", "a2"),
            ("日本", "日木"),
        ] {
            assert_ne!(skeleton(name), skeleton(other));
        }
    }
}
