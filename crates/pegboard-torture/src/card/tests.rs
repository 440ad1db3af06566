//! The grade, and the format for programs.

use super::*;

#[test]
fn the_grade_follows_the_share_of_failures() {
    for (passed, failed, expected) in [
        (0, 0, None),
        (9, 0, Some('A')),
        (999, 1, Some('B')),
        (90, 10, Some('C')),
        (6, 4, Some('D')),
        (1, 1, Some('F')),
    ] {
        assert_eq!(grade(passed, failed), expected, "{passed} {failed}");
    }
}

#[test]
fn xml_is_well_formed_whatever_a_server_says() {
    assert_eq!(escape("<a b=\"&\">\u{1}\n"), "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}\n");
}
